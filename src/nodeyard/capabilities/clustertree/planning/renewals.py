"""The time of the last lease renewal as status shows it: a timestamp, never an age.

Leases are renewed every ten seconds, too often for status writes. In the normal case the timestamp is updated about
once a minute, as the kubelet does for its node. If leases are late or have stopped it is exact and no longer changes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.clustertree.leases.liveness import LeafHealth, State
from nodeyard.capabilities.clustertree.planning.ownership import mirrors_of
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.kube.timestamps import parse_rfc3339_or_none

UPDATE_INTERVAL: Final = timedelta(minutes=1)


def shown_renewal(snapshot: TreeSnapshot, now: datetime) -> datetime | None:
    """Return when all leases were last renewed. After a restart the present status counts until new health is
    published."""
    shown = parse_rfc3339_or_none(snapshot.cluster.status.leases_renewed_time)
    health = snapshot.leaf.health
    if health is None or health.renewed_at is None:
        return shown
    is_recent = shown is not None and shown <= now < shown + UPDATE_INTERVAL
    return shown if is_recent and not _has_stopped(health) else health.renewed_at


def next_update_at(snapshot: TreeSnapshot, now: datetime) -> datetime | None:
    """Return when the timestamp must be updated; None if it does not change."""
    health = snapshot.leaf.health
    shown = shown_renewal(snapshot, now)
    if health is None or health.renewed_at is None or shown is None or _has_stopped(health):
        return None
    if not mirrors_of(snapshot.mirrors, snapshot.cluster.name):
        return None
    due = shown + UPDATE_INTERVAL
    return due if due > now else now + UPDATE_INTERVAL


def _has_stopped(health: LeafHealth) -> bool:
    return health.state is State.UNREACHABLE or bool(health.failed)
