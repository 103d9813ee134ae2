"""Orders upgrades: a new Kubernetes version goes to the control plane first, then to the pools, one at a time by id.

    control plane ──all replicas run it──▶ first pool ──settled──▶ second pool ...

No kubelet is ever newer than the control plane, and the control plane is upgraded one minor version at a time. A pool
that is paused, blocked or has a failed Machine stops the upgrade.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.blocks import VersionSkew, VersionStopped, VersionWaits
from nodeyard.capabilities.pools.planning.machine_state import (
    is_control_plane_initialized,
    is_paused,
    is_settled,
    machine_version,
    replicas,
)
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot
from nodeyard.kube.json import Object

KUBELET_SKEW = 3
"""Maximum minor versions that a kubelet may be behind its API server."""
_FAILED = "Failed"
_RUNNING = "Running"
_VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?")


class KubeVersion(NamedTuple):
    major: int
    minor: int
    patch: int
    pre_release: str = ""
    """The pre-release, such as rc.1."""
    build: str = ""
    """The build metadata: Cluster API replaces machines if it differs."""


def parse_version(text: str) -> KubeVersion | None:
    """Parse vMAJOR.MINOR.PATCH with optional pre-release and build; None if it is not a version."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    major, minor, patch, pre_release, build = found.groups()
    return KubeVersion(int(major), int(minor), int(patch), pre_release or "", build or "")


def minors_between(older: str, newer: str) -> int | None:
    """Return the number of minor versions from `older` to `newer`; negative if `older` is newer."""
    before, after = parse_version(older), parse_version(newer)
    if before is None or after is None or before.major != after.major:
        return None
    return after.minor - before.minor


UpgradeStop: TypeAlias = VersionWaits | VersionStopped | VersionSkew
"""Why not every machine runs the version yet."""


@dataclass(frozen=True)
class Versions:
    control_plane: str
    pools: Mapping[str, str] = field(default_factory=dict)
    """The version of each pool's machines, by pool."""
    stop: UpgradeStop | None = None
    """Reason why the upgrade waits; None if all machines run the version."""


@dataclass(frozen=True)
class PoolState:
    """State of a pool that decides its turn in the upgrade."""

    id: str
    deployment: Object | None
    machines: Sequence[Machine] = ()
    is_blocked: bool = False
    """True if the pool is blocked and cannot be changed."""


def sequence(snapshot: PoolsSnapshot, pools: Sequence[PoolState]) -> Versions:
    """Return the versions that the control plane and each pool get now."""
    wanted = snapshot.cluster.version
    control_plane, stop = _control_plane(snapshot, wanted, pools)
    reported = _newest_kubelet_version(snapshot, control_plane)
    versions = {
        # A new pool gets the version of the control plane.
        pool.id: machine_version(pool.deployment) if pool.deployment is not None else reported
        for pool in pools
    }
    if stop is None:
        stop = _upgrade_next_pool(snapshot, wanted, pools, versions)
    return Versions(control_plane, versions, stop)


def _control_plane(snapshot: PoolsSnapshot, wanted: str, pools: Sequence[PoolState]) -> tuple[str, UpgradeStop | None]:
    live = snapshot.management.control_plane
    current = str(((live or {}).get("spec") or {}).get("version") or "")
    if live is None or not current or parse_version(current) == parse_version(wanted):
        return (current if current else wanted), None
    if not is_control_plane_initialized(snapshot.management.cluster, live):
        return wanted, None
    step = minors_between(current, wanted)
    if step is None or not 0 <= step <= 1:
        return current, VersionSkew(from_=current, to=wanted)
    if not _is_control_plane_on(live, current):
        return current, _upgrading_control_plane(snapshot, current, wanted)
    for pool in pools:
        behind = minors_between(machine_version(pool.deployment), wanted) if pool.deployment else 0
        if behind is not None and behind > KUBELET_SKEW:
            return current, VersionWaits(pool=pool.id, version=current, to=wanted)
    return wanted, None


def _upgrading_control_plane(snapshot: PoolsSnapshot, version: str, wanted: str) -> VersionWaits:
    """Return the stop for a control plane whose replicas do not all run the version."""
    live = snapshot.management.control_plane
    machines = [each for each in snapshot.management.machines if names.CONTROL_PLANE_LABEL in each.metadata.labels]
    desired = None if live is None else replicas(live)
    return VersionWaits(version=version, to=wanted, desired=desired, running=_count_running(machines, version))


def _count_running(machines: Sequence[Machine], version: str) -> int:
    """Count the Machines that run the version; Cluster API's counters lag behind."""
    wanted = parse_version(version)
    return sum(parse_version(each.spec.version) == wanted and each.status.phase == _RUNNING for each in machines)


def _is_control_plane_on(control_plane: Object | None, version: str) -> bool:
    """Return True if every control plane replica runs this version and is available."""
    return control_plane is not None and _version(control_plane) == version and is_settled(control_plane)


def _has_other_version(control_plane: Object | None, version: str) -> bool:
    """Return True if a replica reports another version; before the first one is up, none is reported."""
    return control_plane is not None and _version(control_plane) not in ("", version)


def _version(control_plane: Object) -> str:
    """Return the oldest version that a control plane replica runs."""
    return str((control_plane.get("status") or {}).get("version") or "")


def _newest_kubelet_version(snapshot: PoolsSnapshot, wanted: str) -> str:
    """Return the newest version that a kubelet may run: that of the whole control plane, or its initial one."""
    live = snapshot.management.control_plane or {}
    return str((live.get("status") or {}).get("version") or (live.get("spec") or {}).get("version") or wanted)


def _upgrade_next_pool(
    snapshot: PoolsSnapshot, wanted: str, pools: Sequence[PoolState], versions: dict[str, str]
) -> UpgradeStop | None:
    """Upgrade at most one pool; return what the next ones wait for."""
    live = snapshot.management.control_plane
    behind = [pool for pool in pools if parse_version(versions[pool.id]) != parse_version(wanted)]
    if _has_other_version(live, wanted) or (behind and not _is_control_plane_on(live, wanted)):
        return _upgrading_control_plane(snapshot, wanted, wanted)
    if not behind:
        return next((_upgrading(pool, wanted) for pool in pools if not _has_all_machines_on(pool, wanted)), None)
    for pool in pools:
        is_behind = parse_version(versions[pool.id]) != parse_version(wanted)
        if (stop := _pool_stop(pool, wanted, is_behind)) is not None:
            return stop
        if is_behind:
            versions[pool.id] = wanted
            return None if pool is behind[-1] and _has_all_machines_on(pool, wanted) else _upgrading(pool, wanted)
    return None


def _pool_stop(pool: PoolState, wanted: str, is_behind: bool) -> UpgradeStop | None:
    """Return the reason why the upgrade cannot pass this pool; None if it can."""
    deployment = pool.deployment
    if is_behind and pool.is_blocked:
        return VersionStopped(pool=pool.id, to=wanted, why="it is blocked")
    if deployment is None:
        return None
    if is_paused(deployment):
        return VersionStopped(pool=pool.id, to=wanted, why="it is paused") if is_behind else None
    failed = [machine.metadata.name for machine in pool.machines if machine.status.phase == _FAILED]
    if failed:
        return VersionStopped(pool=pool.id, to=wanted, why=f"Machine {failed[0]} has failed")
    if not is_behind and not _is_upgraded(pool, deployment, wanted):
        return _upgrading(pool, wanted)
    return None


def _is_upgraded(pool: PoolState, deployment: Object, wanted: str) -> bool:
    """Return True if the upgrade of a pool is complete.

    Machines are checked too: right after a change Cluster API's counters have the new observedGeneration and still
    count old machines.
    """
    return is_settled(deployment) and _has_all_machines_on(pool, wanted)


def _has_all_machines_on(pool: PoolState, wanted: str) -> bool:
    """Return True if every Machine of the pool has the version."""
    return all(parse_version(each.spec.version) == parse_version(wanted) for each in pool.machines)


def _upgrading(pool: PoolState, wanted: str) -> VersionWaits:
    """Return the stop for a pool whose upgrade has started and whose Machines do not all have the version."""
    desired = None if pool.deployment is None else replicas(pool.deployment)
    return VersionWaits(pool=pool.id, to=wanted, desired=desired, running=_count_running(pool.machines, wanted))
