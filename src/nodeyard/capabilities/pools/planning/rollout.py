"""Rollout of machines: a version or a template reference replaces them; other changes are in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.machine_state import bootstrap_of, infrastructure_of, machine_version
from nodeyard.capabilities.pools.planning.server_side_apply import ApprovalGroup, change_group, upgrade_group
from nodeyard.capabilities.pools.planning.versions import parse_version
from nodeyard.capabilities.pools.snapshot import MachineSet, Management, PoolsSnapshot
from nodeyard.kube.json import Object
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef

VERSION = "the Kubernetes version"
MACHINE = "the machine template (nodeClass, provider settings)"
_REPLACING = {
    "spec.template.spec.version": VERSION,
    "spec.template.spec.infrastructureRef": MACHINE,
    "spec.template.spec.bootstrap": "labels or taints that are set when a node joins",
    "spec.template.spec.failureDomain": "the failure domain",
    "spec.version": VERSION,
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


def replacement_group(snapshot: PoolsSnapshot, name: str, why: Sequence[str]) -> ApprovalGroup:
    """Return the approval group of a change that replaces the machines of this object, for these reasons.

    A new version counts every machine that does not run it: it reaches the control plane and the pools one after the
    other, and no step alone may exceed the limit.
    """
    lc, wanted = snapshot.cluster, parse_version(snapshot.cluster.version)
    if VERSION not in why:
        return change_group(lc, f"{name}: {', '.join(why)}")
    versions = Counter(each.spec.version for each in snapshot.management.machines if each.spec.cluster_name == lc.name)
    nodes = sum(number for version, number in versions.items() if parse_version(version) != wanted)
    root = ObjectRef(api_version=names.API_VERSION, kind=names.CLUSTER_KIND, name=lc.name, uid=lc.metadata.uid)
    return upgrade_group(lc)._replace(nodes=nodes, root=root)


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
