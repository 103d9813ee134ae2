"""Removes a pool that is no longer in the spec, by poolDeletionPolicy; cancels the removal if it is added again.

    Drain    record the start ─▶ drain (`drains`) ─▶ delete the MachineDeployment once it is empty
    Orphan   limit Cluster API's drain ─▶ wait until every Machine has the limit ─▶ delete: it never blocks
    Force    disable Cluster API's drain ─▶ wait until every Machine has the setting ─▶ delete

Every policy deletes the MachineDeployment with its Machines: Cluster API cannot keep them. The deletion cannot be
undone, so it is the last step. The current step is read from the objects: the policy or the leader may change between
any two steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from nodeyard.capabilities.pools.planning import machine_state
from nodeyard.capabilities.pools.planning.cordons import uncordon
from nodeyard.capabilities.pools.planning.deletion_settings import (
    apply_deletion_settings,
    has_deletion_settings,
    restore_deletion_settings,
)
from nodeyard.capabilities.pools.planning.drains import WaitingPod, drain
from nodeyard.capabilities.pools.planning.removed_pool import RemovedPool
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import DeletionPolicy, PoolPhase
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.plan.builder import NAMED, PlanBuilder
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
    """Progress of a removal."""

    reason: Reason
    """The last action, or the reason why it waits."""
    facts: Object = field(default_factory=dict)
    started: datetime | None = None
    """The start time of its drain."""
    pods: tuple[WaitingPod, ...] = ()
    """Pods that block the drain."""
    nodes: int = 0
    """The number of nodes that still have pods to evict."""
    machines: int = 0
    """The number of Machines."""

    @property
    def phase(self) -> PoolPhase:
        return _PHASES.get(self.reason, PoolPhase.BLOCKED)


def remove_pool(builder: PlanBuilder, snapshot: PoolsSnapshot, deployment: Object, pool_id: str) -> Removal:
    """Plan the next step of the removal of a pool."""
    pool = RemovedPool(snapshot, deployment, pool_id)
    if meta.is_deleting(deployment):
        return _block(builder, pool, Reason.DEPLOYMENT_DELETING)
    if machine_state.is_paused(deployment):
        return _block(builder, pool, Reason.PAUSED)
    if not pool.machines and not machine_state.counters(deployment).replicas:
        return _delete(builder, pool)
    if pool.policy is DeletionPolicy.ORPHAN:
        builder.block_with_facts(pool.ref, Reason.ORPHAN_DELETES, pool.facts(machines=len(pool.machines)))
    is_drain = pool.policy is DeletionPolicy.DRAIN
    if apply_deletion_settings(builder, pool):
        return _removal(pool, Reason.DRAIN_STARTED if is_drain else Reason.POOL_MARKED, pool.facts())
    return _drain(builder, pool) if is_drain else _delete_after_settings(builder, pool)


def cancel_removal(builder: PlanBuilder, snapshot: PoolsSnapshot, deployment: Object, pool_id: str) -> tuple[str, ...]:
    """Cancel the removal of a pool that is in the spec again; return the ids of the actions.

    Nodes are checked each time, even after the MachineDeployment is restored: a node that was unreachable then is still
    cordoned.
    """
    if meta.is_deleting(deployment):
        return ()
    pool = RemovedPool(snapshot, deployment, pool_id)
    ids = [restore_deletion_settings(builder, pool), *(uncordon(builder, pool, node) for node in pool.nodes)]
    return tuple(filter(None, ids))


def _drain(builder: PlanBuilder, pool: RemovedPool) -> Removal:
    started = pool.started
    assert started is not None, "the deletion settings record the start"
    progress = drain(builder, pool, started)
    if progress.reason is None:
        return _delete_if_all_seen(builder, pool)
    return _block(builder, pool, progress.reason, progress.facts, progress.pods, progress.nodes)


def _delete_after_settings(builder: PlanBuilder, pool: RemovedPool) -> Removal:
    """Delete the MachineDeployment once every Machine has the settings; later they could not be changed."""
    pending = [each.metadata.name for each in pool.machines if not has_deletion_settings(pool, each)]
    if pending:
        return _block(builder, pool, Reason.MACHINES_MARKING, {"missing": len(pending), "names": pending[:NAMED]})
    return _delete_if_all_seen(builder, pool)


def _delete_if_all_seen(builder: PlanBuilder, pool: RemovedPool) -> Removal:
    """Delete the MachineDeployment, unless it counts more Machines than the cache has: those may not be empty."""
    counted = machine_state.counters(pool.deployment).replicas
    if counted > len(pool.machines):
        return _block(builder, pool, Reason.MACHINES_UNSEEN, {"replicas": counted})
    return _delete(builder, pool)


def _delete(builder: PlanBuilder, pool: RemovedPool) -> Removal:
    """Delete the MachineDeployment. The first step counted the disruption; Cluster API deletes the Machines."""
    facts = pool.facts(policy=pool.policy.value, machines=len(pool.machines))
    builder.act_with_facts(
        Verb.DELETE,
        pool.ref,
        Reason.POOL_DELETED,
        facts,
        Write(resource_version=meta.resource_version(pool.deployment), propagation="Background"),
        disruption=Disruption.DELETES if pool.machines else Disruption.NONE,
        disrupts=pool.disrupted_nodes,
        already_approved=bool(pool.machines),
    )
    return _removal(pool, Reason.POOL_DELETED, facts)


def _block(
    builder: PlanBuilder,
    pool: RemovedPool,
    reason: Reason,
    facts: Object | None = None,
    pods: tuple[WaitingPod, ...] = (),
    nodes: int = 0,
) -> Removal:
    all_facts = pool.facts(machines=len(pool.machines), **(facts or {}))
    builder.block_with_facts(pool.ref, reason, all_facts)
    return _removal(pool, reason, all_facts, pods, nodes)


def _removal(
    pool: RemovedPool, reason: Reason, facts: Object, pods: tuple[WaitingPod, ...] = (), nodes: int = 0
) -> Removal:
    return Removal(reason, facts, pool.started, pods, nodes, len(pool.machines))
