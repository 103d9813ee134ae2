"""The phase of a LatticeCluster: where it is on its way, in the design's words."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.capabilities.pools.messages import text
from nodeyard.capabilities.pools.planning.pivot import is_initialized, may_scale
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import Phase
from nodeyard.plan.model import Blocked

_FAILURES = frozenset({Reason.INVALID, Reason.PROVIDER_NOT_SERVED})


def phase_of(snapshot: PoolsSnapshot, blocked: Sequence[Blocked]) -> tuple[Phase, str]:
    """And what there is to say about it."""
    phase = _phase(snapshot, blocked)
    said = next((each for each in blocked if phase is not Phase.READY or each.object.kind != "MachineDeployment"), None)
    if said is None:
        said = next(iter(blocked), None)
    return phase, "" if said is None else text(said.reason, said.facts)


def _phase(snapshot: PoolsSnapshot, blocked: Sequence[Blocked]) -> Phase:
    if snapshot.cluster.is_deleting:
        return Phase.DELETING
    if any(each.reason in _FAILURES for each in blocked):
        return Phase.FAILED
    if snapshot.management.cluster is None:
        return Phase.PENDING
    if may_scale(snapshot):
        return Phase.READY
    return Phase.PIVOTING if is_initialized(snapshot) else Phase.PROVISIONING
