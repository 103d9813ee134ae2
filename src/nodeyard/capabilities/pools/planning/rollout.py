"""Rollout of machines: a version or a template reference replaces them; other changes are in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodeyard.capabilities.pools.planning.machine_state import bootstrap_of, infrastructure_of, machine_version
from nodeyard.capabilities.pools.planning.versions import parse_version
from nodeyard.capabilities.pools.snapshot import MachineSet, Management
from nodeyard.kube.json import Object
from nodeyard.plan.model import Disruption, FieldChange

MACHINE = "the machine template (nodeClass, provider settings)"
_REPLACING = {
    "spec.template.spec.version": "the Kubernetes version",
    "spec.template.spec.infrastructureRef": MACHINE,
    "spec.template.spec.bootstrap": "labels or taints that are set when a node joins",
    "spec.template.spec.failureDomain": "the failure domain",
    "spec.version": "the Kubernetes version",
    "spec.machineTemplate.spec.infrastructureRef": "the machine template (provider settings)",
    "spec.kubeadmConfigSpec": "the kubeadm configuration of the control plane",
}


def reasons(changed: Iterable[FieldChange]) -> tuple[str, ...]:
    """Return the parts of a change that make Cluster API replace machines; empty if it changes them in place."""
    paths = [change.path for change in changed]
    found = [text for prefix, text in _REPLACING.items() if any(_is_below(path, prefix) for path in paths)]
    return tuple(dict.fromkeys(found))


def replacement(
    changed: Iterable[FieldChange], nodes: Sequence[str]
) -> tuple[Disruption, tuple[str, ...], tuple[str, ...]]:
    """Return the disruption of a change to a live object, its nodes, and the changed parts."""
    why = reasons(changed) if nodes else ()
    return (Disruption.REPLACES, tuple(nodes), why) if why else (Disruption.NONE, (), ())


def has_outdated(management: Management, deployment: Object) -> bool:
    """Return True if Machines have another version or template than the MachineDeployment.

    Cluster API's counters lag: right after a change they have the new observedGeneration and still count old machines.
    """
    version, templates = (
        parse_version(machine_version(deployment)),
        (bootstrap_of(deployment), infrastructure_of(deployment)),
    )
    for machine in management.machines_of(deployment["metadata"]["name"]):
        owner = machine.metadata.controller
        machine_set = management.machine_set(owner.name) if owner is not None else None
        if parse_version(machine.spec.version) != version or (
            machine_set is not None and _template_refs(machine_set) != templates
        ):
            return True
    return False


def _template_refs(machine_set: MachineSet) -> tuple[tuple[str, str], tuple[str, str]]:
    spec = machine_set.spec.template.spec
    bootstrap, infrastructure = spec.bootstrap.config_ref, spec.infrastructure_ref
    return (bootstrap.kind, bootstrap.name), (infrastructure.kind, infrastructure.name)


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))
