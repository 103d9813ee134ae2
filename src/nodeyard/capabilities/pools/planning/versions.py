"""A new Kubernetes version goes to the control plane first, then to the pools, one at a time and in the order of names.

    control plane ──all replicas on it──▶ first pool ──settled──▶ second pool ...

No kubelet is ever newer than the control plane, and the control plane climbs one minor version at a time. A pool that
is paused, blocked or failing stops the sequence there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodeyard.capabilities.pools.planning.kube_version import minors_between, parse
from nodeyard.capabilities.pools.planning.observed import (
    counters,
    is_control_plane_initialized,
    is_paused,
    is_settled,
    machine_version,
)
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot
from nodeyard.kube.json import Object

KUBELET_SKEW = 3
"""How many minor versions a kubelet may be older than its API server."""
_FAILED = "Failed"


@dataclass(frozen=True)
class Stop:
    """Why the version is not everywhere yet."""

    reason: Reason
    facts: Object


@dataclass(frozen=True)
class Versions:
    control_plane: str
    pools: Mapping[str, str] = field(default_factory=dict)
    """The version for each pool's machines, by pool."""
    stop: Stop | None = None
    """What the next step, or the end, waits for; None where all are on the version."""


@dataclass(frozen=True)
class PoolState:
    """What of a pool decides its turn."""

    id: str
    deployment: Object | None
    machines: Sequence[Machine] = ()
    is_blocked: bool = False
    """It cannot be changed at present."""


def sequence(snapshot: PoolsSnapshot, pools: Sequence[PoolState]) -> Versions:
    """Which version everything gets now."""
    wanted = snapshot.cluster.version
    control_plane, stop = _control_plane(snapshot, wanted, pools)
    reported = _reported(snapshot, control_plane)
    versions = {pool.id: _present(pool, reported) for pool in pools}
    if stop is None:
        stop = _take_turns(snapshot, wanted, pools, versions)
    return Versions(control_plane, versions, stop)


def _control_plane(snapshot: PoolsSnapshot, wanted: str, pools: Sequence[PoolState]) -> tuple[str, Stop | None]:
    live = snapshot.management.control_plane
    current = str(((live or {}).get("spec") or {}).get("version") or "")
    if live is None or not current or parse(current) == parse(wanted):
        return (current if current else wanted), None
    if not is_control_plane_initialized(snapshot.management.cluster, live):
        return wanted, None
    step = minors_between(current, wanted)
    if step is None or not 0 <= step <= 1:
        return current, Stop(Reason.SKEW, {"from": current, "to": wanted})
    if not _has_all_on(live, current):
        return current, Stop(Reason.VERSION_WAITS, {"what": "the control plane", "version": current, "to": wanted})
    for pool in pools:
        behind = minors_between(machine_version(pool.deployment), wanted) if pool.deployment else 0
        if behind is not None and behind > KUBELET_SKEW:
            return current, Stop(Reason.VERSION_WAITS, {"what": f"pool {pool.id}", "version": current, "to": wanted})
    return wanted, None


def _has_all_on(control_plane: Object | None, version: str) -> bool:
    """Whether every replica of the control plane reports this version."""
    return control_plane is not None and _version(control_plane) == version and is_settled(control_plane)


def _reports_another(control_plane: Object | None, version: str) -> bool:
    """Whether a replica is still on another one; while the first comes up, none reports any."""
    return control_plane is not None and _version(control_plane) not in ("", version)


def _version(control_plane: Object) -> str:
    """The oldest that a replica of it runs."""
    return str((control_plane.get("status") or {}).get("version") or "")


def _reported(snapshot: PoolsSnapshot, wanted: str) -> str:
    """The newest version that a kubelet may have now: what the whole control plane runs, or will run from the start."""
    live = snapshot.management.control_plane or {}
    return str((live.get("status") or {}).get("version") or (live.get("spec") or {}).get("version") or wanted)


def _present(pool: PoolState, reported: str) -> str:
    """A pool keeps its version until it is its turn; a new one gets what the control plane runs."""
    return machine_version(pool.deployment) if pool.deployment is not None else reported


def _take_turns(
    snapshot: PoolsSnapshot, wanted: str, pools: Sequence[PoolState], versions: dict[str, str]
) -> Stop | None:
    """Let at most one pool move; what the ones behind it wait for."""
    live = snapshot.management.control_plane
    behind = [pool for pool in pools if parse(versions[pool.id]) != parse(wanted)]
    if _reports_another(live, wanted) or (behind and not _has_all_on(live, wanted)):
        return Stop(Reason.VERSION_WAITS, {"what": "the control plane", "version": wanted, "to": wanted})
    if not behind:
        return next((_on_its_way(pool, wanted) for pool in pools if not _has_all(pool, wanted)), None)
    for pool in pools:
        is_behind = parse(versions[pool.id]) != parse(wanted)
        if (stop := _stops(pool, wanted, is_behind)) is not None:
            return stop
        if is_behind:
            versions[pool.id] = wanted
            return None if pool is behind[-1] and _has_all(pool, wanted) else _on_its_way(pool, wanted)
    return None


def _stops(pool: PoolState, wanted: str, is_behind: bool) -> Stop | None:
    """Whether the sequence cannot go past this pool."""
    deployment = pool.deployment
    facts: Object = {"pool": pool.id, "to": wanted}
    if is_behind and pool.is_blocked:
        return Stop(Reason.VERSION_STOPPED, {**facts, "why": "it is blocked"})
    if deployment is None:
        return None
    if is_paused(deployment):
        return Stop(Reason.VERSION_STOPPED, {**facts, "why": "it is paused"}) if is_behind else None
    failed = [machine.metadata.name for machine in pool.machines if machine.status.phase == _FAILED]
    if failed:
        return Stop(Reason.VERSION_STOPPED, {**facts, "why": f"machine {failed[0]} has failed"})
    if not is_behind and not _is_through(pool, deployment, wanted):
        counted = counters(deployment)
        facts = {**facts, "upToDate": counted.up_to_date, "available": counted.available}
        return Stop(Reason.VERSION_WAITS, {**facts, "what": f"pool {pool.id}"})
    return None


def _is_through(pool: PoolState, deployment: Object, wanted: str) -> bool:
    """Whether a pool that was told to has gone over to the version.

    Its Machines are looked at too: right after a change Cluster API's counters name the new generation and still speak
    of the machines before it.
    """
    return is_settled(deployment) and _has_all(pool, wanted)


def _has_all(pool: PoolState, wanted: str) -> bool:
    """Whether every machine that it has is of the version."""
    return all(parse(each.spec.version) == parse(wanted) for each in pool.machines)


def _on_its_way(pool: PoolState, wanted: str) -> Stop:
    """It has been told. Nobody may wait behind it; still the version is not everywhere before its machines have it."""
    return Stop(Reason.VERSION_WAITS, {"what": f"pool {pool.id}", "pool": pool.id, "to": wanted})
