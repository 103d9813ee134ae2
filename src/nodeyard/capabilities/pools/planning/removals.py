"""Removes a pool that is no longer in the spec, by poolDeletionPolicy; cancels the removal if it is added again.

    Drain    record the start ─▶ drain (`drains`) ─▶ delete the MachineDeployment once it is empty
    Orphan   limit Cluster API's drain ─▶ wait until every Machine has the limit ─▶ delete: it never blocks
    Force    disable Cluster API's drain ─▶ wait until every Machine has the setting ─▶ delete

Every policy deletes the MachineDeployment with its Machines: Cluster API cannot keep them. The deletion cannot be
undone, so it is the last step. The current step is read from the objects: the policy or the leader may change between
any two steps.
"""

from __future__ import annotations

from nodeyard.capabilities.pools.messages.removals import (
    DeploymentDeleting,
    DeploymentPaused,
    DrainOptionsPending,
    MachinesUnseen,
    OrphanDeletes,
    PoolDeleted,
)
from nodeyard.capabilities.pools.planning import machine_state
from nodeyard.capabilities.pools.planning.deletion_settings import (
    apply_deletion_settings,
    has_deletion_settings,
    restore_deletion_settings,
)
from nodeyard.capabilities.pools.planning.drains import drain, uncordon
from nodeyard.capabilities.pools.planning.removed_pool import RemovedPool
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import DeletionPolicy
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.message_format import NAMED
from nodeyard.plan.model import Disruption, Verb, Write


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
