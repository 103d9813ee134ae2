"""What a user should know though nothing is wrong: numbers that are ignored, policies that say less than they seem."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.capabilities.pools.planning.adoption import removed
from nodeyard.capabilities.pools.planning.foundation import cluster_ref
from nodeyard.capabilities.pools.planning.pivot import may_scale
from nodeyard.capabilities.pools.planning.pools import Pool, pool_ref
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import Pivot
from nodeyard.plan.draft import Draft


def give_notice(draft: Draft, snapshot: PoolsSnapshot, wanted: Sequence[Pool]) -> None:
    lc, ref = snapshot.cluster, cluster_ref(snapshot)
    for pool in wanted:
        has_bounds = pool.spec.min is not None or pool.spec.max is not None
        if has_bounds and not lc.is_autoscaled:
            facts = {"cluster": lc.name, "pool": pool.id, "replicas": pool.spec.replicas}
            draft.block(pool_ref(snapshot, pool), Reason.AUTOSCALING_IGNORED, facts)
    if not wanted and removed(lc.name, snapshot.management, {}):
        draft.block(ref, Reason.ALL_POOLS_REMOVED, {"cluster": lc.name})
    if not may_scale(snapshot) and any(pool.spec.replicas for pool in wanted):
        is_self = lc.spec.pivot != Pivot.NEVER
        reason = Reason.NOT_PIVOTED if is_self else Reason.CONTROL_PLANE_PENDING
        draft.block(ref, reason, {"cluster": lc.name, "error": snapshot.workload.error})
