"""Which changes replace machines: those of a version or of a reference to a template. Everything else is in place.

And whether machines that are to be replaced are still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodeyard.capabilities.pools.planning.kube_version import parse
from nodeyard.capabilities.pools.planning.observed import bootstrap_of, infrastructure_of, machine_version
from nodeyard.capabilities.pools.snapshot import MachineSet, Management
from nodeyard.kube.json import Object
from nodeyard.plan.model import Disruption, FieldChange

_REPLACING = {
    "spec.template.spec.version": "the Kubernetes version",
    "spec.template.spec.infrastructureRef": "the machine (class, provider settings)",
    "spec.template.spec.bootstrap": "labels or taints that only a new node can get",
    "spec.template.spec.failureDomain": "the failure domain",
    "spec.version": "the Kubernetes version",
    "spec.machineTemplate.spec.infrastructureRef": "the machine (provider settings)",
    "spec.kubeadmConfigSpec": "the configuration of the control plane",
}


def reasons(changed: Iterable[FieldChange]) -> tuple[str, ...]:
    """What in a change makes Cluster API replace machines; nothing where it changes them in place."""
    paths = [change.path for change in changed]
    found = [text for prefix, text in _REPLACING.items() if any(_is_below(path, prefix) for path in paths)]
    return tuple(dict.fromkeys(found))


def replacement(
    changed: Iterable[FieldChange], nodes: Sequence[str]
) -> tuple[Disruption, tuple[str, ...], tuple[str, ...]]:
    """How disruptive changing an object that exists is, for which nodes, and why."""
    why = reasons(changed) if nodes else ()
    return (Disruption.REPLACES, tuple(nodes), why) if why else (Disruption.NONE, (), ())


def has_outdated(management: Management, deployment: Object) -> bool:
    """Whether there are machines made otherwise than a MachineDeployment says now.

    Cluster API counts late: right after a change its counters name the new generation, and still speak of the machines
    before it.
    """
    version, made = parse(machine_version(deployment)), (bootstrap_of(deployment), infrastructure_of(deployment))
    for machine in management.machines_of(deployment["metadata"]["name"]):
        owner = machine.metadata.controller
        its_set = management.machine_set(owner.name) if owner is not None else None
        if parse(machine.spec.version) != version or (its_set is not None and _made_of(its_set) != made):
            return True
    return False


def _made_of(machine_set: MachineSet) -> tuple[tuple[str, str], tuple[str, str]]:
    spec = machine_set.spec.template.spec
    bootstrap, infrastructure = spec.bootstrap.config_ref, spec.infrastructure_ref
    return (bootstrap.kind, bootstrap.name), (infrastructure.kind, infrastructure.name)


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))
