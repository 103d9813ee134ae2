"""Drains a pool: cordons its nodes and evicts their pods within PodDisruptionBudgets, without a time limit.

    started ──all nodes cordoned──▶ evicting ──no pod left──▶ settling ──▶ drained
                ▲                     │  ▲
                └──a Machine joins────┘  └── budget rejects: retry; after the timeout report DrainTimeout

Only the start time is stored. Machines, nodes and pods are read each time, so a restarted or new leader continues the
drain at any point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from nodeyard.capabilities.pools.planning.cordons import cordon, cordoned_since, is_cordoned
from nodeyard.capabilities.pools.planning.removed_pool import RemovedPool
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.kube.drain import Handling, eviction_options, given_up_at, handling
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node, Pod
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Disruption, ObjectRef, Verb, Write

SETTLE = timedelta(seconds=5)
"""Wait after the cordon: a pod bound just before it may not have reached the cache yet."""

RETRY = timedelta(seconds=10)
"""The longest interval between retries of a rejected eviction."""

LISTED = 50
"""The maximum number of pods in the status."""

_UNKNOWN = "the uid of the workload cluster is not known yet"
_TICK = timedelta(seconds=1)


class WaitingPod(NamedTuple):
    """A pod that blocks a drain."""

    pod: Pod
    node: Node
    is_evicted: bool
    """True if the drain evicts it; False if it only waits for it to end."""

    @property
    def name(self) -> str:
        return f"{self.pod.metadata.namespace}/{self.pod.metadata.name}"


@dataclass(frozen=True)
class Progress:
    """Progress of a drain."""

    reason: Reason | None
    """The reason why it waits; None when it is done."""
    pods: tuple[WaitingPod, ...] = ()
    nodes: int = 0
    """The number of nodes that still have pods to evict."""
    facts: Object | None = None


DRAINED = Progress(None)


def drain(builder: PlanBuilder, pool: RemovedPool, started: datetime) -> Progress:
    """Plan the next step of the drain."""
    workload = pool.workload
    if not pool.is_reachable:
        return Progress(Reason.WORKLOAD_UNREACHABLE, facts={"error": workload.error or _UNKNOWN})
    uncordoned = [node for node in pool.nodes if not is_cordoned(node)]
    for node in uncordoned:
        cordon(builder, pool, node)
    if workload.pods is None:
        return Progress(Reason.PODS_UNKNOWN, nodes=len(pool.nodes))
    waiting = tuple(_waiting_pods(pool, builder.now))
    if not uncordoned:
        _evict(builder, pool, waiting)
    if waiting or uncordoned:
        return _unfinished(builder, pool, started, waiting, len(uncordoned))
    settled = max([started, *filter(None, map(cordoned_since, pool.nodes))]) + SETTLE
    if builder.now < settled:
        builder.wake(settled)
        return Progress(Reason.DRAINING)
    return DRAINED


def _waiting_pods(pool: RemovedPool, now: datetime) -> Iterator[WaitingPod]:
    """Yield the pods that block the drain, sorted by node and name."""
    found, daemon_sets = pool.workload.pods or {}, pool.workload.daemon_sets
    for node in pool.nodes:
        for pod in sorted(found.get(node.metadata.name, ()), key=_by_name):
            decision = handling(pod, node, daemon_sets, now)
            if decision is not Handling.LEAVE:
                yield WaitingPod(pod, node, decision is Handling.EVICT)


def _by_name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


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
    builder.act_with_facts(
        Verb.EVICT,
        ref,
        Reason.POD_EVICTED,
        pool.facts(pod=each.name, node=node),
        Write(body=eviction_options(each.node)),
        disruption=Disruption.EVICTS,
        disrupts=(node,),
        already_approved=True,
    )


def _unfinished(
    builder: PlanBuilder, pool: RemovedPool, started: datetime, waiting: tuple[WaitingPod, ...], open_nodes: int
) -> Progress:
    listed, nodes = waiting[:LISTED], len({each.node.metadata.name for each in waiting})
    facts = {
        "nodes": nodes,
        "open": open_nodes,
        "pods": len(waiting),
        "blocking": [f"{each.name} on {each.node.metadata.name}" for each in listed],
        "blockingPods": [{"pod": each.name, "node": each.node.metadata.name} for each in listed],
        "seconds": pool.timeout,
    }
    expires = started + timedelta(seconds=pool.timeout)
    if pool.timeout and builder.now >= expires:
        return Progress(Reason.DRAIN_TIMEOUT, waiting, nodes, facts)
    if pool.timeout:
        builder.wake(expires)
    return Progress(Reason.DRAINING, waiting, nodes, facts)
