"""Adds warnings to the plan: ignored min and max, unmanaged workers, removed pools, a pending pivot."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.capabilities.pools.planning.cluster_objects import cluster_ref
from nodeyard.capabilities.pools.planning.deployment_lookup import removed, unclaimed
from nodeyard.capabilities.pools.planning.machine_state import may_scale, replicas
from nodeyard.capabilities.pools.planning.pools import Pool, pool_ref
from nodeyard.capabilities.pools.planning.server_side_apply import ref_to
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import LatticeCluster, Pivot, WorkerPool
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.plan.builder import PlanBuilder


def autoscaling_warning(lc: LatticeCluster, id: str, pool: WorkerPool) -> tuple[Reason, Object] | None:
    """Return the warning about min and max that have no effect; None if there is none."""
    if pool.min is None and pool.max is None:
        return None
    facts: Object = {"cluster": lc.name, "pool": id, "replicas": pool.replicas}
    if not lc.is_autoscaled:
        return Reason.AUTOSCALING_IGNORED, facts
    missing = "min" if pool.min is None else "max" if pool.max is None else ""
    return (Reason.AUTOSCALING_INCOMPLETE, {**facts, "missing": missing}) if missing else None


def add_warnings(builder: PlanBuilder, snapshot: PoolsSnapshot, wanted: Sequence[Pool]) -> None:
    lc, ref = snapshot.cluster, cluster_ref(snapshot)
    for pool in wanted:
        if (notice := autoscaling_warning(lc, pool.id, pool.spec)) is not None:
            builder.block_with_facts(pool_ref(snapshot, pool), *notice)
    if (workers := unclaimed(lc.name, snapshot.management, {pool.id: pool for pool in wanted})) is not None:
        facts = {"cluster": lc.name, "name": meta.name(workers), "replicas": replicas(workers)}
        builder.block_with_facts(ref_to(workers), Reason.WORKERS_UNCLAIMED, facts)
    if not wanted and removed(lc.name, snapshot.management, {}):
        builder.block_with_facts(ref, Reason.ALL_POOLS_REMOVED, {"cluster": lc.name})
    if not may_scale(snapshot) and any(pool.spec.replicas for pool in wanted):
        is_self = lc.spec.pivot != Pivot.NEVER
        reason = Reason.NOT_PIVOTED if is_self else Reason.CONTROL_PLANE_PENDING
        builder.block_with_facts(ref, reason, {"cluster": lc.name, "error": snapshot.workload.error})
