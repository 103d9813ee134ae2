"""Whether a leaf node that is mirrored by itself still speaks: by its Ready condition, and by its lease in the leaf.

The lease says it also where nobody in the leaf looks after its nodes. Its time is the leaf's, so that the difference
between the clocks is taken off. While we do not see the leaf, or only its leases, nothing is concluded from what we
remember of it: what was last said about the node stands.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import Leaf, TreeNode
from nodeyard.kube.conditions import UNKNOWN

DURATION: Final = 40
"""Seconds that a lease holds which does not say so."""
LENIENCE: Final = timedelta(seconds=10)
LOOK_AGAIN: Final = timedelta(seconds=10)
"""A lease that is renewed again causes no event."""


def is_silent(leaf: Leaf, name: str, mirror: TreeNode | None, now: datetime) -> bool:
    """Of a leaf node, and of the node of the root that mirrors it."""
    node = leaf.nodes.get(name)
    if node is None or not (leaf.is_connected and leaf.is_synced):
        return _was_silent(mirror)
    ready = node.condition(READY)
    if ready is None or ready.status == UNKNOWN:
        return True
    expiry = expires_at(leaf, name)
    if expiry is None or expiry > now:
        return False
    return leaf.is_leased or _was_silent(mirror)


def look_again_at(leaf: Leaf, name: str, now: datetime) -> datetime | None:
    """When its lease could tell otherwise; None where only an event can."""
    node = leaf.nodes.get(name)
    ready = None if node is None else node.condition(READY)
    expiry = expires_at(leaf, name)
    if expiry is None or not leaf.is_connected or ready is None or ready.status == UNKNOWN:
        return None
    return expiry if expiry > now else now + LOOK_AGAIN


def expires_at(leaf: Leaf, name: str) -> datetime | None:
    """By our clock; None where there is no lease to go by."""
    lease = leaf.leases.get(name)
    if lease is None or lease.spec.renew_time is None:
        return None
    skew = 0.0 if leaf.finding is None else leaf.finding.skew_seconds
    held = timedelta(seconds=lease.spec.lease_duration_seconds or DURATION)
    return lease.spec.renew_time + held + LENIENCE - timedelta(seconds=skew)


def _was_silent(mirror: TreeNode | None) -> bool:
    ready = None if mirror is None else mirror.condition(READY)
    return ready is not None and ready.reason == Reason.LEAF_NODE_SILENT
