"""Who says how many: a field manager of its own, so that everything else can be applied without saying it.

Cluster API takes an absent number for 1, also when an apply removes it. So a MachineDeployment is made with 0, then the
second manager takes the field over, and only then may an apply of the rest leave it out. Before the pivot nothing is
scaled, and what cannot be observed is never a reason to.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation.autoscaling import is_autoscaled
from nodeyard.capabilities.pools.planning.applying import ref_to
from nodeyard.capabilities.pools.planning.observed import replicas
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import LatticeCluster, WorkerPool
from nodeyard.kube.json import Object
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write
from nodeyard.plan.owned import owners

PART = "replicas"
FIELD = ("spec", "replicas")


def wanted(lc: LatticeCluster, pool: WorkerPool, current: int) -> int:
    """The number a live pool should have: its own, or what the autoscaler made of it, within its bounds."""
    if not is_autoscaled(lc, pool):
        return pool.replicas
    assert pool.min is not None
    assert pool.max is not None
    return min(max(current, pool.min), pool.max)


def is_held_by_us_alone(deployment: Object) -> bool:
    """Whether an apply that leaves the number out would remove it."""
    return owners(deployment, *FIELD) <= {names.MANAGER}


def first(draft: Draft, lc: LatticeCluster, pool_id: str, pool: WorkerPool, ref: ObjectRef, created: str,
          may_scale: bool) -> str:  # fmt: skip
    """Of a pool that is being made: take the number over, and set it where the cluster is ready for it."""
    number = wanted(lc, pool, pool.replicas) if may_scale else 0
    return _apply(draft, lc, pool_id, ref, 0, number, "", (created,))


def scale(draft: Draft, lc: LatticeCluster, pool_id: str, pool: WorkerPool, deployment: Object, may_scale: bool,
          victims: Sequence[str] = ()) -> str:  # fmt: skip
    """Of a pool that exists; the id of the action, empty where nothing is to be done."""
    current = replicas(deployment)
    number = wanted(lc, pool, current) if may_scale else current
    if number == current and not is_held_by_us_alone(deployment):
        return ""
    # Saying again what is there must not undo what somebody else says meanwhile.
    version = deployment["metadata"]["resourceVersion"] if number == current else ""
    return _apply(draft, lc, pool_id, ref_to(deployment), current, number, version, (), victims)


def _apply(
    draft: Draft,
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
    facts = {"cluster": lc.name, "pool": pool_id, "from": current, "to": number}
    return draft.act(
        Verb.APPLY,
        ref,
        Reason.POOL_SCALED if is_scaling else Reason.REPLICAS_TAKEN_OVER,
        facts,
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
    )
