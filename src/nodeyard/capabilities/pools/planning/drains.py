"""Drains a pool: cordons its nodes and evicts their pods within PodDisruptionBudgets, without a time limit.

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
    Draining,
    DrainTimeout,
    NodeCordoned,
    NodeUncordoned,
    PodEvicted,
    PodOnNode,
    PodsUnknown,
    WorkloadUnreachable,
)
from nodeyard.capabilities.pools.planning.removed_pool import RemovedPool
from nodeyard.kube import timestamps
from nodeyard.kube.drain import Handling, eviction_options, given_up_at, handling
from nodeyard.kube.json import Object
from nodeyard.kube.names import POOL_DRAINING
from nodeyard.kube.objects import Node, Pod
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.message import Message
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write

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
    waiting = tuple(_waiting_pods(pool, builder.now))
    if not uncordoned:
        _evict(builder, pool, waiting)
    if waiting or uncordoned:
        return _unfinished(builder, pool, started, waiting)
    settled = max([started, *filter(None, map(_cordoned_since, pool.nodes))]) + SETTLE
    if builder.now < settled:
        builder.wake(settled)
        return Draining(pool=pool.pool)
    return None


def _waiting_pods(pool: RemovedPool, now: datetime) -> Iterator[WaitingPod]:
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
    metadata, node = each.pod.metadata, each.node.metadata.name
    ref = ObjectRef(
        api_version="v1",
        kind="Pod",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        cluster=pool.workload.cluster,
    )
    builder.act(
        Verb.EVICT,
        ref,
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
