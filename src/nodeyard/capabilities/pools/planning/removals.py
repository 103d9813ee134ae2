"""A pool that was taken out of the spec goes, by the cluster's policy; and stays after all when it is put back.

    Drain    note the start ─▶ drain (`drains`) ─▶ delete the MachineDeployment when it is empty, never before
    Orphan   bound Cluster API's own drain ─▶ wait until every Machine knows ─▶ delete: it never blocks
    Force    tell Cluster API not to drain ─▶ wait until every Machine knows ─▶ delete

All of them end with the deletion of the MachineDeployment, and that of its machines: Cluster API cannot leave them. It
cannot be undone either, so everything that may have to be undone comes before. Each step is read off the objects: the
policy may change between any two of them, and so may the process that takes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from nodeyard.capabilities.pools.planning import observed
from nodeyard.capabilities.pools.planning.cordons import uncordon
from nodeyard.capabilities.pools.planning.drains import WaitingPod, drain
from nodeyard.capabilities.pools.planning.leaving import LeavingPool
from nodeyard.capabilities.pools.planning.marks import has_arrived, mark, unmark
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import DeletionPolicy, PoolPhase
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.plan.draft import NAMED, Draft
from nodeyard.plan.model import Disruption, Verb, Write

_PHASES = {
    Reason.DRAIN_STARTED: PoolPhase.DRAINING,
    Reason.DRAINING: PoolPhase.DRAINING,
    Reason.POOL_MARKED: PoolPhase.DELETING,
    Reason.MACHINES_MARKING: PoolPhase.DELETING,
    Reason.POOL_DELETED: PoolPhase.DELETING,
    Reason.DEPLOYMENT_DELETING: PoolPhase.DELETING,
    Reason.PAUSED: PoolPhase.PAUSED,
}


@dataclass(frozen=True)
class Removal:
    """How far a removal is."""

    reason: Reason
    """What was done, or what it waits for."""
    facts: Object = field(default_factory=dict)
    started: datetime | None = None
    """When its drain began."""
    pods: tuple[WaitingPod, ...] = ()
    """What the drain waits for."""
    nodes: int = 0
    """How many nodes are not empty yet."""
    machines: int = 0
    """How many Machines there are."""

    @property
    def phase(self) -> PoolPhase:
        return _PHASES.get(self.reason, PoolPhase.BLOCKED)


def remove_pool(draft: Draft, snapshot: PoolsSnapshot, deployment: Object, pool_id: str) -> Removal:
    """Take the removal of a pool one step further."""
    pool = LeavingPool(snapshot, deployment, pool_id)
    if meta.is_deleting(deployment):
        return _waiting(draft, pool, Reason.DEPLOYMENT_DELETING)
    if observed.is_paused(deployment):
        return _waiting(draft, pool, Reason.PAUSED)
    if not pool.machines and not observed.counters(deployment).replicas:
        return _delete(draft, pool)
    if pool.policy is DeletionPolicy.ORPHAN:
        draft.block(pool.ref, Reason.ORPHAN_DELETES, pool.facts(machines=len(pool.machines)))
    is_drain = pool.policy is DeletionPolicy.DRAIN
    if mark(draft, pool):
        return _removal(pool, Reason.DRAIN_STARTED if is_drain else Reason.POOL_MARKED, pool.facts())
    return _drain(draft, pool) if is_drain else _hand_over(draft, pool)


def cancel_removal(draft: Draft, snapshot: PoolsSnapshot, deployment: Object, pool_id: str) -> tuple[str, ...]:
    """Undo what was done for the removal of a pool that is wanted after all; the ids of the actions.

    The nodes are looked at each time, and not only while the MachineDeployment says that it is drained: one that could
    not be reached then still has its cordon.
    """
    if meta.is_deleting(deployment):
        return ()
    pool = LeavingPool(snapshot, deployment, pool_id)
    ids = [unmark(draft, pool), *(uncordon(draft, pool, node) for node in pool.nodes)]
    return tuple(filter(None, ids))


def _drain(draft: Draft, pool: LeavingPool) -> Removal:
    started = pool.started
    assert started is not None, "the mark says when"
    progress = drain(draft, pool, started)
    if progress.reason is None:
        return _delete_whole(draft, pool)
    return _waiting(draft, pool, progress.reason, progress.facts, progress.pods, progress.nodes)


def _hand_over(draft: Draft, pool: LeavingPool) -> Removal:
    """Cluster API drains as it is told, or not at all; every Machine has to know before it is too late to tell."""
    unaware = [each.metadata.name for each in pool.machines if not has_arrived(pool, each)]
    if unaware:
        return _waiting(draft, pool, Reason.MACHINES_MARKING, {"missing": len(unaware), "names": unaware[:NAMED]})
    return _delete_whole(draft, pool)


def _delete_whole(draft: Draft, pool: LeavingPool) -> Removal:
    """Delete it, unless it has machines that we do not see: of those nothing is known, least of all that they are
    empty."""
    counted = observed.counters(pool.deployment).replicas
    if counted > len(pool.machines):
        return _waiting(draft, pool, Reason.MACHINES_UNSEEN, {"replicas": counted})
    return _delete(draft, pool)


def _delete(draft: Draft, pool: LeavingPool) -> Removal:
    """What it disturbs was counted with the first step. Cluster API deletes what is below by itself."""
    facts = pool.facts(policy=pool.policy.value, machines=len(pool.machines))
    draft.act(
        Verb.DELETE,
        pool.ref,
        Reason.POOL_DELETED,
        facts,
        Write(resource_version=meta.resource_version(pool.deployment), propagation="Background"),
        disruption=Disruption.DELETES if pool.machines else Disruption.NONE,
        disrupts=pool.disturbed,
        is_granted=bool(pool.machines),
    )
    return _removal(pool, Reason.POOL_DELETED, facts)


def _waiting(
    draft: Draft,
    pool: LeavingPool,
    reason: Reason,
    facts: Object | None = None,
    pods: tuple[WaitingPod, ...] = (),
    nodes: int = 0,
) -> Removal:
    told = pool.facts(machines=len(pool.machines), **(facts or {}))
    draft.block(pool.ref, reason, told)
    return _removal(pool, reason, told, pods, nodes)


def _removal(
    pool: LeavingPool, reason: Reason, facts: Object, pods: tuple[WaitingPod, ...] = (), nodes: int = 0
) -> Removal:
    return Removal(reason, facts, pool.started, pods, nodes, len(pool.machines))
