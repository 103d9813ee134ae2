"""Scales pools with a separate field manager, so that an apply of the other fields omits replicas.

Cluster API defaults absent replicas to 1, even if an apply removes the field. So a MachineDeployment is created with 0,
then the second manager takes ownership of the field, and only then may another apply omit it. Nothing is scaled before
the pivot, or because a read failed.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.changes import PoolScaled, ReplicasTakenOver
from nodeyard.capabilities.pools.planning.machine_state import replicas
from nodeyard.capabilities.pools.planning.server_side_apply import change_group, ref_to
from nodeyard.capabilities.pools.types import LatticeCluster, WorkerPool
from nodeyard.kube.json import Object
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.managed_fields import owners
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write

PART = "replicas"
FIELD = ("spec", "replicas")


def wanted(lc: LatticeCluster, pool: WorkerPool, current: int) -> int:
    """Return the desired replicas: of the spec, or the current ones within min and max if autoscaled."""
    if not lc.is_pool_autoscaled(pool):
        return pool.replicas
    assert pool.min is not None
    assert pool.max is not None
    return min(max(current, pool.min), pool.max)


def is_held_by_us_alone(deployment: Object) -> bool:
    """Return True if an apply without replicas would remove the field: no other manager owns it."""
    return owners(deployment, *FIELD) <= {names.MANAGER}


def set_initial(
    builder: PlanBuilder,
    lc: LatticeCluster,
    pool_id: str,
    pool: WorkerPool,
    ref: ObjectRef,
    created: str,
    may_scale: bool,
) -> str:
    """Take ownership of the replicas of a new pool, and scale it if workers may start."""
    number = wanted(lc, pool, pool.replicas) if may_scale else 0
    return _apply(builder, lc, pool_id, ref, 0, number, "", (created,))


def scale(
    builder: PlanBuilder,
    lc: LatticeCluster,
    pool_id: str,
    pool: WorkerPool,
    deployment: Object,
    may_scale: bool,
    nodes: Sequence[str] = (),
) -> str:
    """Scale an existing pool; return the action's id, empty if nothing changes."""
    current = replicas(deployment)
    number = wanted(lc, pool, current) if may_scale else current
    if number == current and not is_held_by_us_alone(deployment):
        return ""
    # Optimistic locking: taking ownership of the current value must not undo a concurrent scale.
    version = deployment["metadata"]["resourceVersion"] if number == current else ""
    return _apply(builder, lc, pool_id, ref_to(deployment), current, number, version, (), nodes)


def _apply(
    builder: PlanBuilder,
    lc: LatticeCluster,
    pool_id: str,
    ref: ObjectRef,
    current: int,
    number: int,
    resource_version: str,
    after: tuple[str, ...],
    nodes: Sequence[str] = (),
) -> str:
    is_scaling, lost = number != current, max(current - number, 0)
    return builder.act(
        Verb.APPLY,
        ref,
        PoolScaled(pool=pool_id, from_=current, to=number)
        if is_scaling
        else ReplicasTakenOver(pool=pool_id, replicas=number),
        Write(
            body={"spec": {"replicas": number}},
            field_manager=names.REPLICAS_MANAGER,
            resource_version=resource_version,
        ),
        diff=(FieldChange(path="spec.replicas", from_=current, to=number),) if is_scaling else (),
        disruption=Disruption.DELETES if lost else Disruption.NONE,
        disrupts=tuple(nodes[:lost]),
        after=after,
        part=PART,
        approval_group=change_group(lc, f"{ref.name}: {current} to {number}").name if lost else "",
    )
