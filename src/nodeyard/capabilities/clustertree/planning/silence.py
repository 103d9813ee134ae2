"""Whether a leaf node that is mirrored by itself still speaks: by its Ready condition, and by its lease in the leaf.

The lease says it also where nobody in the leaf looks after its nodes. Its time is the leaf's, so that the difference
between the clocks is taken off. While we do not see the leaf, or not its leases, nothing is concluded from what we
remember of it: what was last said about the node stands. So it does in the first moments after contact was made again:
what is known of the leases then is from before.
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
"""Seconds that a lease holds which does not say so."""
LENIENCE: Final = timedelta(seconds=10)
LOOK_AGAIN: Final = timedelta(seconds=10)
"""At a lease that has run out: what else is known of it may change without an event."""
HEARING: Final = timedelta(seconds=10)
"""After contact was made: by then every lease that is still renewed has been heard of."""


def is_silent(leaf: Leaf, name: str, mirror: TreeNode | None, now: datetime) -> bool:
    """Of a leaf node, and of the node of the root that mirrors it. One that the leaf does not have is silent too."""
    if not (leaf.is_connected and leaf.is_synced):
        return _was_silent(mirror)
    node = leaf.nodes.get(name)
    ready = None if node is None else node.condition(READY)
    if ready is None or ready.status == UNKNOWN:
        return True
    expiry = expires_at(leaf, name)
    if expiry is None or expiry > now:
        return False
    return _is_heard(leaf, now) or _was_silent(mirror)


def look_again_at(leaf: Leaf, name: str, now: datetime) -> datetime | None:
    """When its lease could tell otherwise; None where only an event can."""
    node = leaf.nodes.get(name)
    ready = None if node is None else node.condition(READY)
    expiry = expires_at(leaf, name)
    if expiry is None or not leaf.is_connected or ready is None or ready.status == UNKNOWN:
        return None
    if expiry > now:
        return expiry
    heard = _heard_at(leaf)
    return heard if heard is not None and heard > now else now + LOOK_AGAIN


def expires_at(leaf: Leaf, name: str) -> datetime | None:
    """By our clock; None where there is no lease to go by."""
    lease = leaf.leases.get(name)
    end = None if lease is None else _runs_out_at(lease)
    skew = 0.0 if leaf.finding is None else leaf.finding.skew_seconds
    return None if end is None else end - timedelta(seconds=skew)


def is_taken_up(old: Lease, new: Lease) -> bool:
    """Whether the lease had run out before it was renewed."""
    end, renewed = _runs_out_at(old), new.spec.renew_time
    return end is not None and renewed is not None and renewed >= end


def _runs_out_at(lease: Lease) -> datetime | None:
    """By the leaf's clock."""
    held = timedelta(seconds=lease.spec.lease_duration_seconds or DURATION)
    return None if lease.spec.renew_time is None else lease.spec.renew_time + held + LENIENCE


def _is_heard(leaf: Leaf, now: datetime) -> bool:
    """Whether a lease that looks old is: it would have been heard of by now."""
    heard = _heard_at(leaf)
    return leaf.is_leased and (heard is None or heard <= now)


def _heard_at(leaf: Leaf) -> datetime | None:
    """When everything that happened while there was no contact has been heard of."""
    return None if leaf.connected_at is None else leaf.connected_at + HEARING


def _was_silent(mirror: TreeNode | None) -> bool:
    ready = None if mirror is None else mirror.condition(READY)
    return ready is not None and ready.reason in (Reason.LEAF_NODE_SILENT, Reason.LEAF_NODE_GONE)
