"""Removes a pool that is no longer in the spec, by poolDeletionPolicy; cancels the removal if it is added again.

    Drain    record the start ─▶ drain ─▶ delete the MachineDeployment once it is empty
    Orphan   limit Cluster API's drain ─▶ wait until every Machine has the limit ─▶ delete: it never blocks
    Force    disable Cluster API's drain ─▶ wait until every Machine has the setting ─▶ delete

Every policy deletes the MachineDeployment with its Machines: Cluster API cannot keep them. The deletion cannot be
undone, so it is the last step. The current step is read from the objects: the policy or the leader may change between
any two steps.

A drain cordons the nodes of a pool and evicts their pods within PodDisruptionBudgets, without a time limit:

    started ──all nodes cordoned──▶ evicting ──no pod left──▶ settling ──▶ drained
                ▲                     │  ▲
                └──a Machine joins────┘  └── budget rejects: retry; after the timeout report DrainTimeout

Only the start time is stored. Machines, nodes and pods are read each time, so a restarted or new leader continues the
drain at any point.

Annotations of each node record the start of the drain and, if the drain cordoned it, the pool. A node that somebody
else cordoned stays cordoned if the drain is cancelled. Patches of nodes use optimistic locking: otherwise a cordon that
another client sets in between would be recorded as the drain's own, and undone.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.removals import (
    DeploymentDeleting,
    DeploymentPaused,
    Draining,
    DrainOptionsPending,
    DrainTimeout,
    MachinesUnseen,
    NodeCordoned,
    NodeUncordoned,
    OrphanDeletes,
    PodEvicted,
    PodOnNode,
    PodsUnknown,
    PoolDeleted,
    WorkloadUnreachable,
)
from nodeyard.capabilities.pools.planning import machine_state
from nodeyard.capabilities.pools.planning.removed_pool import (
    RemovedPool,
    apply_deletion_settings,
    has_deletion_settings,
    restore_deletion_settings,
)
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import DeletionPolicy
from nodeyard.kube import meta, timestamps
from nodeyard.kube.drain import Handling, eviction_options, given_up_at, handling
from nodeyard.kube.json import Object
from nodeyard.kube.names import POOL_DRAINING
from nodeyard.kube.objects import Node, Pod
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.message import NAMED, Message
from nodeyard.plan.model import Disruption, FieldChange, Verb, Write


def remove_pool(builder: PlanBuilder, snapshot: PoolsSnapshot, deployment: Object, pool_id: str) -> None:
    """Plan the next step of the removal of a pool."""
    pool = RemovedPool(snapshot, deployment, pool_id)
    if meta.is_deleting(deployment):
        builder.block(pool.ref, DeploymentDeleting(pool=pool.pool, machines=len(pool.machines)))
    elif machine_state.is_paused(deployment):
        builder.block(pool.ref, DeploymentPaused(pool=pool.pool))
    elif not pool.machines and not machine_state.counters(deployment).replicas:
        _delete(builder, pool)
    else:
        if pool.policy is DeletionPolicy.ORPHAN:
            builder.block(pool.ref, OrphanDeletes(pool=pool.pool, machines=len(pool.machines)))
        if apply_deletion_settings(builder, pool):
            return
        if pool.policy is DeletionPolicy.DRAIN:
            _delete_after_drain(builder, pool)
        else:
            _delete_after_settings(builder, pool)


def cancel_removal(builder: PlanBuilder, snapshot: PoolsSnapshot, deployment: Object, pool_id: str) -> str:
    """Cancel the removal of a pool that is in the spec again; return the id of the action on its MachineDeployment.

    Nodes are checked each time, even after the MachineDeployment is restored: a node that was unreachable then is still
    cordoned.
    """
    if meta.is_deleting(deployment):
        return ""
    pool = RemovedPool(snapshot, deployment, pool_id)
    restored = restore_deletion_settings(builder, pool)
    for node in pool.nodes:
        uncordon(builder, pool, node)
    return restored


def _delete_after_drain(builder: PlanBuilder, pool: RemovedPool) -> None:
    started = pool.started
    assert started is not None, "the deletion settings record the start"
    if (waiting := drain(builder, pool, started)) is not None:
        builder.block(pool.ref, waiting)
    else:
        _delete_if_all_seen(builder, pool)


def _delete_after_settings(builder: PlanBuilder, pool: RemovedPool) -> None:
    """Delete the MachineDeployment once every Machine has the settings; later they could not be changed."""
    missing = [each.metadata.name for each in pool.machines if not has_deletion_settings(pool, each)]
    if missing:
        first, machines = tuple(missing[:NAMED]), len(pool.machines)
        pending = DrainOptionsPending(pool=pool.pool, missing=len(missing), names=first, machines=machines)
        builder.block(pool.ref, pending)
    else:
        _delete_if_all_seen(builder, pool)


def _delete_if_all_seen(builder: PlanBuilder, pool: RemovedPool) -> None:
    """Delete the MachineDeployment, unless it counts more Machines than the cache has: those may not be empty."""
    replicas, machines = machine_state.counters(pool.deployment).replicas, len(pool.machines)
    if replicas > machines:
        builder.block(pool.ref, MachinesUnseen(pool=pool.pool, replicas=replicas, machines=machines))
    else:
        _delete(builder, pool)


def _delete(builder: PlanBuilder, pool: RemovedPool) -> None:
    """Delete the MachineDeployment. The first step counted the disruption; Cluster API deletes the Machines."""
    builder.act(
        Verb.DELETE,
        pool.ref,
        PoolDeleted(pool=pool.pool),
        Write(resource_version=meta.resource_version(pool.deployment), propagation="Background"),
        disruption=Disruption.DELETES if pool.machines else Disruption.NONE,
        disrupts=pool.disrupted_nodes,
        already_approved=bool(pool.machines),
    )


# drains


SETTLE: Final = timedelta(seconds=5)
"""Wait after the cordon: a pod bound just before it may not have reached the cache yet."""
RETRY: Final = timedelta(seconds=10)
"""The longest interval between retries of a rejected eviction."""
LISTED: Final = 50
"""The maximum number of pods in the status."""
_UNKNOWN: Final = "the uid of the workload cluster is not known yet"
_TICK: Final = timedelta(seconds=1)


class WaitingPod(NamedTuple):
    """A pod that blocks a drain."""

    pod: Pod
    node: Node
    is_evicted: bool
    """True if the drain evicts it; False if it only waits for it to end."""

    @property
    def name(self) -> str:
        return f"{self.pod.metadata.namespace}/{self.pod.metadata.name}"


def drain(builder: PlanBuilder, pool: RemovedPool, started: datetime) -> Message | None:
    """Plan the next step of the drain; return what it waits for, or None if the pool is drained."""
    if not pool.is_reachable:
        return WorkloadUnreachable(pool=pool.pool, error=pool.workload.error or _UNKNOWN)
    uncordoned = [node for node in pool.nodes if not _is_cordoned(node)]
    for node in uncordoned:
        _cordon(builder, pool, node)
    if pool.workload.pods is None:
        return PodsUnknown(pool=pool.pool)
    waiting = tuple(waiting_pods(pool, builder.now))
    if not uncordoned:
        _evict(builder, pool, waiting)
    if waiting or uncordoned:
        return _unfinished(builder, pool, started, waiting)
    settled = max([started, *filter(None, map(_cordoned_since, pool.nodes))]) + SETTLE
    if builder.now < settled:
        builder.wake(settled)
        return Draining(pool=pool.pool)
    return None


def waiting_pods(pool: RemovedPool, now: datetime) -> Iterator[WaitingPod]:
    """Yield the pods that block the drain, sorted by node and name."""
    found, daemon_sets = pool.workload.pods or {}, pool.workload.daemon_sets
    for node in pool.nodes:
        pods = found.get(node.metadata.name, ())
        for pod in sorted(pods, key=lambda each: (each.metadata.namespace, each.metadata.name)):
            decision = handling(pod, node, daemon_sets, now)
            if decision is not Handling.LEAVE:
                yield WaitingPod(pod, node, decision is Handling.EVICT)


def _evict(builder: PlanBuilder, pool: RemovedPool, waiting: tuple[WaitingPod, ...]) -> None:
    for each in waiting:
        if each.is_evicted:
            builder.wake(builder.now + RETRY)
            _evict_pod(builder, pool, each)
        elif (deadline := given_up_at(each.pod, each.node)) is not None:
            builder.wake(deadline + _TICK)


def _evict_pod(builder: PlanBuilder, pool: RemovedPool, each: WaitingPod) -> None:
    node = each.node.metadata.name
    builder.act(
        Verb.EVICT,
        pool.pod_ref(each.pod),
        PodEvicted(pool=pool.pool, pod=each.name, node=node),
        Write(body=eviction_options(each.node)),
        disruption=Disruption.EVICTS,
        disrupts=(node,),
        already_approved=True,
    )


def _unfinished(
    builder: PlanBuilder, pool: RemovedPool, started: datetime, waiting: tuple[WaitingPod, ...]
) -> Draining | DrainTimeout:
    pods, nodes = len(waiting), len({each.node.metadata.name for each in waiting})
    blocking = tuple(PodOnNode(each.name, each.node.metadata.name) for each in waiting[:LISTED])
    expires = started + timedelta(seconds=pool.timeout)
    if pool.timeout and builder.now >= expires:
        return DrainTimeout(pool=pool.pool, pods=pods, nodes=nodes, blocking_pods=blocking, seconds=pool.timeout)
    if pool.timeout:
        builder.wake(expires)
    return Draining(pool=pool.pool, pods=pods, nodes=nodes, blocking_pods=blocking)


# cordons


def uncordon(builder: PlanBuilder, pool: RemovedPool, node: Node) -> None:
    """Undo the cordon of this pool, if the drain set it."""
    has = node.metadata.annotations
    cordoned_by, message = has.get(names.CORDONED_BY), NodeUncordoned(pool=pool.pool, node=node.metadata.name)
    if cordoned_by == pool.owner:
        keys = [key for key in (POOL_DRAINING, names.CORDONED_BY) if key in has]
        _patch_node(builder, pool, node, dict.fromkeys(keys), False, message)
    elif cordoned_by is None and POOL_DRAINING in has:
        _patch_node(builder, pool, node, {POOL_DRAINING: None}, node.spec.unschedulable, message)


def _is_cordoned(node: Node) -> bool:
    """Return True if the node is unschedulable and marked as draining for other capabilities."""
    return node.spec.unschedulable and POOL_DRAINING in node.metadata.annotations


def _cordoned_since(node: Node) -> datetime | None:
    return timestamps.parse_rfc3339_or_none(node.metadata.annotations.get(POOL_DRAINING))


def _cordon(builder: PlanBuilder, pool: RemovedPool, node: Node) -> None:
    annotations: dict[str, str | None] = {POOL_DRAINING: timestamps.format_rfc3339(builder.now)}
    if not node.spec.unschedulable:
        annotations[names.CORDONED_BY] = pool.owner
    _patch_node(builder, pool, node, annotations, True, NodeCordoned(pool=pool.pool, node=node.metadata.name))


def _patch_node(
    builder: PlanBuilder,
    pool: RemovedPool,
    node: Node,
    annotations: dict[str, str | None],
    unschedulable: bool,
    message: NodeCordoned | NodeUncordoned,
) -> None:
    before = node.metadata.annotations
    body: Object = {"metadata": {"annotations": annotations}}
    diff = [
        FieldChange(path=f"metadata.annotations[{key}]", from_=before.get(key), to=value)
        for key, value in annotations.items()
    ]
    if unschedulable != node.spec.unschedulable:
        wanted = unschedulable or None
        body["spec"] = {"unschedulable": wanted}
        diff.append(FieldChange(path="spec.unschedulable", from_=node.spec.unschedulable or None, to=wanted))
    is_cordon = isinstance(message, NodeCordoned)
    builder.act(
        Verb.PATCH,
        pool.node_ref(node),
        message,
        Write(body=body, resource_version=node.metadata.resource_version),
        diff=tuple(diff),
        disruption=Disruption.RELEASES if is_cordon else Disruption.NONE,
        already_approved=is_cordon,
    )
