"""Whether a cluster manages itself, and whether its workers may be scaled. Observed each time, never remembered."""

from __future__ import annotations

from nodeyard.capabilities.pools.planning.observed import is_control_plane_initialized
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import Pivot


def is_initialized(snapshot: PoolsSnapshot) -> bool:
    """Whether its control plane has come up."""
    return is_control_plane_initialized(snapshot.management.cluster, snapshot.management.control_plane)


def is_pivoted(snapshot: PoolsSnapshot) -> bool:
    """Whether its kubeconfig leads back to the server we are on."""
    return is_initialized(snapshot) and snapshot.workload.is_own


def may_scale(snapshot: PoolsSnapshot) -> bool:
    """Workers come after the pivot, or where there is none, after the control plane."""
    if snapshot.cluster.spec.pivot == Pivot.NEVER:
        return is_initialized(snapshot)
    return is_pivoted(snapshot)
