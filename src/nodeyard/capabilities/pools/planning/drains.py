"""A pool is drained: its nodes closed, their pods evicted within their budgets, and that for as long as it takes.

    begun ──every node closed──▶ evicting ──nothing left to evict or wait for──▶ settling ──▶ drained
                ▲                    │  ▲
                └──a Machine joins───┘  └── refused by a budget: again, and after the timeout reported as blocked

Nothing is remembered but when it began. Which Machines, nodes and pods there are is looked up each time, so a drain can
be taken up by anyone, at any point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from nodeyard.capabilities.pools.planning.cordons import closed_since, cordon, is_closed
from nodeyard.capabilities.pools.planning.leaving import LeavingPool
from nodeyard.capabilities.pools.planning.pods import Handling, given_up_at, handling, is_unreachable
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node, Pod
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Disruption, ObjectRef, Verb, Write

SETTLE = timedelta(seconds=5)
"""A pod may have been bound just before the cordon and not have reached our cache yet; so long it may take."""

RETRY = timedelta(seconds=10)
"""How soon an eviction that was refused is asked for again, at the latest."""

LISTED = 50
"""How many pods are named."""

_UNKNOWN = "which cluster its nodes are in is not known yet"
_TICK = timedelta(seconds=1)


class WaitingPod(NamedTuple):
    """A pod that a drain waits for."""

    pod: Pod
    node: Node
    is_evicted: bool
    """Whether its eviction is asked for; else it is only waited for."""

    @property
    def name(self) -> str:
        return f"{self.pod.metadata.namespace}/{self.pod.metadata.name}"


@dataclass(frozen=True)
class Progress:
    """How far a drain is."""

    reason: Reason | None
    """What it waits for; None when it is done."""
    pods: tuple[WaitingPod, ...] = ()
    nodes: int = 0
    """How many nodes are not empty yet."""
    facts: Object | None = None


DRAINED = Progress(None)


def drain(draft: Draft, pool: LeavingPool, started: datetime) -> Progress:
    """Take the drain one step further."""
    workload = pool.workload
    if not pool.is_reachable:
        return Progress(Reason.WORKLOAD_UNREACHABLE, facts={"error": workload.error or _UNKNOWN})
    is_open = [node for node in pool.nodes if not is_closed(node)]
    for node in is_open:
        cordon(draft, pool, node)
    if workload.pods is None:
        return Progress(Reason.PODS_UNKNOWN, nodes=len(pool.nodes))
    waiting = tuple(_waiting(pool, draft.now))
    if not is_open:
        _evict(draft, pool, waiting)
    if waiting or is_open:
        return _unfinished(draft, pool, started, waiting, len(is_open))
    settled = max([started, *filter(None, map(closed_since, pool.nodes))]) + SETTLE
    if draft.now < settled:
        draft.wake(settled)
        return Progress(Reason.DRAINING)
    return DRAINED


def _waiting(pool: LeavingPool, now: datetime) -> Iterator[WaitingPod]:
    """What is still to leave, by node and name."""
    found, daemon_sets = pool.workload.pods or {}, pool.workload.daemon_sets
    for node in pool.nodes:
        for pod in sorted(found.get(node.metadata.name, ()), key=_by_name):
            handled = handling(pod, node, daemon_sets, now)
            if handled is not Handling.LEAVE:
                yield WaitingPod(pod, node, handled is Handling.EVICT)


def _by_name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name


def _evict(draft: Draft, pool: LeavingPool, waiting: tuple[WaitingPod, ...]) -> None:
    for each in waiting:
        if each.is_evicted:
            draft.wake(draft.now + RETRY)
            _evict_one(draft, pool, each)
        elif (given_up := given_up_at(each.pod, each.node)) is not None:
            draft.wake(given_up + _TICK)


def _evict_one(draft: Draft, pool: LeavingPool, each: WaitingPod) -> None:
    metadata, node = each.pod.metadata, each.node.metadata.name
    ref = ObjectRef(
        api_version="v1",
        kind="Pod",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        cluster=pool.workload.cluster,
    )
    # Nobody is there to end it gracefully, and the sooner it is due the sooner it is given up.
    options = {"gracePeriodSeconds": 1} if is_unreachable(each.node) else None
    draft.act(
        Verb.EVICT,
        ref,
        Reason.POD_EVICTED,
        pool.facts(pod=each.name, node=node),
        Write(body=options),
        disruption=Disruption.EVICTS,
        disrupts=(node,),
        is_granted=True,
    )


def _unfinished(
    draft: Draft, pool: LeavingPool, started: datetime, waiting: tuple[WaitingPod, ...], open_nodes: int
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
    if pool.timeout and draft.now >= expires:
        return Progress(Reason.DRAIN_TIMEOUT, waiting, nodes, facts)
    if pool.timeout:
        draft.wake(expires)
    return Progress(Reason.DRAINING, waiting, nodes, facts)
