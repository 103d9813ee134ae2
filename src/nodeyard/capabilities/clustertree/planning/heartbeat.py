"""Decides whether a leaf node that is mirrored by itself has stopped reporting, by its Ready condition and its lease.

The lease also works if the leaf has no node lifecycle controller. Its times are the leaf's, so the clock skew is
subtracted. Without contact, or without a watch on leases, cached leases prove nothing, and the node keeps its last
state. The same holds for a short time after contact is restored, while cached leases are still from before.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import Leaf, TreeNode
from nodeyard.kube.conditions import UNKNOWN
from nodeyard.kube.objects import Lease

DURATION: Final = 40
"""Duration in seconds of a lease that does not specify one."""
TOLERANCE: Final = timedelta(seconds=10)
RECHECK: Final = timedelta(seconds=10)
"""Interval of checks of an expired lease: other facts about it may change without an event."""
CATCH_UP: Final = timedelta(seconds=10)
"""Time after a reconnect by which every lease that is still renewed has been received."""


def is_silent(leaf: Leaf, name: str, mirror: TreeNode | None, now: datetime) -> bool:
    """Return True if the leaf node has stopped reporting, or does not exist. `mirror` is its node in the root."""
    if not (leaf.is_connected and leaf.is_synced):
        return was_silent(mirror)
    node = leaf.nodes.get(name)
    ready = None if node is None else node.condition(READY)
    if ready is None or ready.status == UNKNOWN:
        return True
    expiry = expires_at(leaf, name)
    if expiry is None or expiry > now:
        return False
    return _is_caught_up(leaf, now) or was_silent(mirror)


def next_check_at(leaf: Leaf, name: str, now: datetime) -> datetime | None:
    """Return when the lease may change the result; None if only an event can."""
    node = leaf.nodes.get(name)
    ready = None if node is None else node.condition(READY)
    expiry = expires_at(leaf, name)
    if expiry is None or not leaf.is_connected or ready is None or ready.status == UNKNOWN:
        return None
    if expiry > now:
        return expiry
    caught_up = _caught_up_at(leaf)
    return caught_up if caught_up is not None and caught_up > now else now + RECHECK


def expires_at(leaf: Leaf, name: str) -> datetime | None:
    """Return the expiry by our clock; None without a lease."""
    lease = leaf.leases.get(name)
    end = None if lease is None else _expires_at(lease)
    skew = 0.0 if leaf.health is None else leaf.health.skew_seconds
    return None if end is None else end - timedelta(seconds=skew)


def is_renewed_after_expiry(old: Lease, new: Lease) -> bool:
    """Return True if the lease had expired before it was renewed."""
    end, renewed = _expires_at(old), new.spec.renew_time
    return end is not None and renewed is not None and renewed >= end


def _expires_at(lease: Lease) -> datetime | None:
    """Return the expiry by the leaf's clock."""
    held = timedelta(seconds=lease.spec.lease_duration_seconds or DURATION)
    return None if lease.spec.renew_time is None else lease.spec.renew_time + held + TOLERANCE


def _is_caught_up(leaf: Leaf, now: datetime) -> bool:
    """Return True if an old lease really is old: a renewal would have been received by now."""
    caught_up = _caught_up_at(leaf)
    return leaf.is_leased and (caught_up is None or caught_up <= now)


def _caught_up_at(leaf: Leaf) -> datetime | None:
    """Return when all renewals from the time without contact have been received."""
    return None if leaf.connected_at is None else leaf.connected_at + CATCH_UP


def was_silent(mirror: TreeNode | None) -> bool:
    """Return True if the node in the root says that its leaf node is silent or gone."""
    ready = None if mirror is None else mirror.condition(READY)
    return ready is not None and ready.reason in (Reason.LEAF_NODE_SILENT, Reason.LEAF_NODE_GONE)
