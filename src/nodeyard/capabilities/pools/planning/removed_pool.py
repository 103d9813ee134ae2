"""A pool that is being removed: the values that the steps of its removal share, and its deletion settings.

The MachineDeployment of a removed pool is patched with its deletion settings before any other step:

    Drain    the start time of the drain
    Orphan   limits for Cluster API's drain and volume detach
    Force    annotations that skip Cluster API's drain and volume detach

Every policy removes the autoscaler's annotations: it would scale a pool that is being emptied. The original settings of
the template are recorded, so that another policy, or adding the pool again, can restore them.

The writes are merge patches with optimistic locking. Their managedFields entry is an Update of the same manager, beside
its Apply. A MachineDeployment is applied only while its pool is in the spec, so the two do not conflict, and a forced
apply takes the fields back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.removals import DrainCancelled, DrainOptionsSet, DrainStarted
from nodeyard.capabilities.pools.planning.server_side_apply import ref_to
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot, Workload
from nodeyard.capabilities.pools.types import DeletionPolicy
from nodeyard.kube import meta, timestamps
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node, Pod
from nodeyard.kube.patch import merge_diff, merge_patch
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.diff import diff
from nodeyard.plan.message import Message
from nodeyard.plan.model import Disruption, ObjectRef, Verb, Write

_LONGEST = 2**31 - 1
"""The largest timeout that Cluster API accepts (int32)."""


@dataclass(frozen=True)
class RemovedPool:
    snapshot: PoolsSnapshot
    deployment: Object
    pool: str

    @property
    def policy(self) -> DeletionPolicy:
        return self.snapshot.cluster.policy

    @property
    def timeout(self) -> int:
        """The drain timeout in seconds; 0 means no limit."""
        return min(max(0, self.snapshot.cluster.spec.pool_drain_timeout), _LONGEST)

    @property
    def workload(self) -> Workload:
        return self.snapshot.workload

    @property
    def is_reachable(self) -> bool:
        """True if the workload cluster is known and reachable.

        Before a pivot a local node may have the same name as a node of the workload cluster and be mistaken for it.
        """
        workload = self.workload
        return workload.is_own or bool(workload.cluster and workload.uid and not workload.error)

    @property
    def ref(self) -> ObjectRef:
        return ref_to(self.deployment)

    @property
    def owner(self) -> str:
        """The value of the annotation lattice.dev/cordoned-by: cluster/pool."""
        return f"{self.snapshot.cluster.name}/{self.pool}"

    @property
    def started(self) -> datetime | None:
        """The start time of the drain."""
        return timestamps.parse_rfc3339_or_none(meta.annotations(self.deployment).get(names.DRAIN_STARTED))

    @cached_property
    def machines(self) -> list[Machine]:
        """Current Machines; some may have joined since the drain started."""
        return self.snapshot.management.machines_of(meta.name(self.deployment))

    @cached_property
    def nodes(self) -> list[Node]:
        """Existing nodes of its Machines, sorted by name."""
        known = self.workload.nodes if self.is_reachable else {}
        return [known[name] for name in sorted({each.node for each in self.machines}) if name in known]

    @property
    def disrupted_nodes(self) -> tuple[str, ...]:
        """Every node of the pool, for the brake."""
        return node_names(self.workload, self.machines)

    @property
    def approval_group_name(self) -> str:
        """The approval group: all steps of this removal under one policy.

        A pool that is added again and removed by a later edit needs a new approval.
        """
        edit = self.snapshot.cluster.metadata.generation
        return f"remove {self.owner} {meta.uid(self.deployment)} {self.policy.value} {edit}"

    def node_ref(self, node: Node) -> ObjectRef:
        metadata = node.metadata
        return ObjectRef(
            api_version="v1", kind="Node", name=metadata.name, uid=metadata.uid, cluster=self.workload.cluster
        )

    def pod_ref(self, pod: Pod) -> ObjectRef:
        metadata = pod.metadata
        return ObjectRef(
            api_version="v1",
            kind="Pod",
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            cluster=self.workload.cluster,
        )


def node_names(workload: Workload, machines: Sequence[Machine]) -> tuple[str, ...]:
    """Return the nodes of Machines, prefixed with the cluster if it is remote."""
    place = f"{workload.cluster}:" if workload.cluster else ""
    return tuple(sorted({f"{place}{each.node}" for each in machines if each.node}))


# deletion settings


PART = "removal"
_TIMEOUTS = ("nodeDrainTimeoutSeconds", "nodeVolumeDetachTimeoutSeconds")
_EXCLUSIONS = (names.EXCLUDE_DRAINING, names.EXCLUDE_VOLUME_WAIT)
_AUTOSCALER = (names.AUTOSCALER_MIN, names.AUTOSCALER_MAX)


class DeletionRecord(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Record of the changed template settings, to restore them."""

    policy: str = ""
    added: tuple[str, ...] = ()
    """Annotations that the patch added."""
    timeouts: dict[str, int | None] = {}
    """Original timeouts that the patch changed; None if a timeout was absent."""


_NONE = DeletionRecord()


def apply_deletion_settings(builder: PlanBuilder, pool: RemovedPool) -> bool:
    """Patch the settings of the policy; return True if a patch is needed."""
    wanted = _desired_deployment(builder, pool)
    options_set = DrainOptionsSet(pool=pool.pool, policy=pool.policy, machines=len(pool.machines))
    if _has_started(pool):
        return bool(_rewrite(builder, pool, wanted, options_set))
    drain_started = DrainStarted(pool=pool.pool, nodes=len(pool.disrupted_nodes))
    message = drain_started if pool.policy is DeletionPolicy.DRAIN else options_set
    return bool(_rewrite(builder, pool, wanted, message, _DISRUPTIONS[pool.policy]))


def restore_deletion_settings(builder: PlanBuilder, pool: RemovedPool) -> str:
    """Restore the original settings; return the action's id, empty if there is nothing to restore.

    The next apply of the pool adds the autoscaler's annotations again.
    """
    without_record = _with_annotations(pool.deployment, dict.fromkeys((names.DRAIN_STARTED, names.MARKED)))
    wanted = _with_template(without_record, _restored_template(pool.deployment))
    return _rewrite(builder, pool, wanted, DrainCancelled(pool=pool.pool))


def has_deletion_settings(pool: RemovedPool, machine: Machine) -> bool:
    """Return True once Cluster API has copied the settings to the Machine: its deletion reads them from there."""
    if pool.policy is DeletionPolicy.ORPHAN:
        return machine.spec.deletion.node_drain_timeout_seconds == drain_seconds(pool)
    # Cluster API does not copy annotations to a Machine that is being deleted.
    is_deleting = machine.metadata.deletion_timestamp is not None
    return is_deleting or all(each in machine.metadata.annotations for each in _EXCLUSIONS)


def drain_seconds(pool: RemovedPool) -> int:
    """Return Cluster API's drain timeout for Orphan: at least 1 s, because 0 means no limit there."""
    return max(1, pool.timeout)


def read_record(deployment: Object) -> DeletionRecord:
    """Read the record; return an empty one if it is absent or malformed."""
    text = meta.annotations(deployment).get(names.MARKED)
    try:
        return msgspec.json.decode(text, type=DeletionRecord) if text else _NONE
    except (msgspec.DecodeError, RecursionError):
        return _NONE


_DISRUPTIONS = {
    DeletionPolicy.DRAIN: Disruption.RELEASES,
    DeletionPolicy.ORPHAN: Disruption.DELETES,
    DeletionPolicy.FORCE: Disruption.DELETES,
}


def _rewrite(
    builder: PlanBuilder, pool: RemovedPool, wanted: Object, message: Message, disruption: Disruption = Disruption.NONE
) -> str:
    body = merge_diff(pool.deployment, wanted)
    if body is None:
        return ""
    is_disruptive = disruption is not Disruption.NONE
    return builder.act(
        Verb.PATCH,
        pool.ref,
        message,
        Write(body=body, resource_version=meta.resource_version(pool.deployment)),
        diff=diff(pool.deployment, wanted),
        disruption=disruption,
        disrupts=pool.disrupted_nodes if is_disruptive else (),
        part=PART,
        approval_group=pool.approval_group_name if is_disruptive else "",
    )


def _has_started(pool: RemovedPool) -> bool:
    """Return True if the removal has started under this policy: further patches need no new approval."""
    if pool.policy is DeletionPolicy.DRAIN:
        return pool.started is not None
    return read_record(pool.deployment).policy == pool.policy


def _desired_deployment(builder: PlanBuilder, pool: RemovedPool) -> Object:
    """Return the MachineDeployment with the settings of the policy."""
    annotations: dict[str, str | None] = dict.fromkeys(_AUTOSCALER)
    template = _restored_template(pool.deployment)
    if pool.policy is DeletionPolicy.DRAIN:
        annotations[names.MARKED] = None
        if pool.started is None:
            annotations[names.DRAIN_STARTED] = timestamps.format_rfc3339(builder.now)
    else:
        edit = _orphan_template if pool.policy is DeletionPolicy.ORPHAN else _force_template
        record, template = edit(pool, template)
        annotations[names.MARKED] = msgspec.json.encode(record).decode()
    return _with_template(_with_annotations(pool.deployment, annotations), template)


def _orphan_template(pool: RemovedPool, template: Object) -> tuple[DeletionRecord, Object]:
    """Return the record and the template for Orphan."""
    before = _deletion(template)
    record = DeletionRecord(policy=DeletionPolicy.ORPHAN.value, timeouts={each: before.get(each) for each in _TIMEOUTS})
    return record, merge_patch(template, {"spec": {"deletion": dict.fromkeys(_TIMEOUTS, drain_seconds(pool))}})


def _force_template(_pool: RemovedPool, template: Object) -> tuple[DeletionRecord, Object]:
    """Return the record and the template for Force."""
    added = tuple(each for each in _EXCLUSIONS if each not in meta.annotations(template))
    record = DeletionRecord(policy=DeletionPolicy.FORCE.value, added=added)
    return record, _with_annotations(template, dict.fromkeys(added, names.TRUE))


def _restored_template(deployment: Object) -> Object:
    """Return the template with its original settings."""
    template: Object = (deployment.get("spec") or {}).get("template") or {}
    record = read_record(deployment)
    template = _with_annotations(template, dict.fromkeys(each for each in record.added if each in _EXCLUSIONS))
    timeouts = {each: record.timeouts[each] for each in _TIMEOUTS if each in record.timeouts}
    if not timeouts:
        return template
    deletion = {**_deletion(template), **timeouts}
    # Cluster API rejects an empty object.
    is_left = any(value is not None for value in deletion.values())
    return merge_patch(template, {"spec": {"deletion": deletion if is_left else None}})


def _with_annotations(obj: Object, changes: Mapping[str, str | None]) -> Object:
    """Set these annotations and remove those that are None; return the same object if nothing changes."""
    present = meta.annotations(obj)
    real = {key: value for key, value in changes.items() if value is not None or key in present}
    return merge_patch(obj, {"metadata": {"annotations": real}}) if real else obj


def _with_template(deployment: Object, template: Object) -> Object:
    spec = deployment.get("spec") or {}
    return deployment if template is spec.get("template") else {**deployment, "spec": {**spec, "template": template}}


def _deletion(template: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (template.get("spec") or {}).get("deletion") or {}
    return found
