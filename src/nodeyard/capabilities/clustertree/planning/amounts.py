"""What a mirrored node has to offer, and when that is written: when an amount changes, and at most once a second.

Pods come and go in a leaf all the time, and every write costs the root's server several milliseconds. When it was last
written stands on the node, so that a restart or another replica keeps the pace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.planning.resources import changes, free
from nodeyard.kube.moments import read, written_exactly

PACE: Final = timedelta(seconds=1)
_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True)
class Offer:
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    largest: str = ""
    """Of each resource, the most that is free on one leaf node; empty unless asked for."""
    written_at: str = ""
    held_until: datetime | None = None
    """It differs from what the node says, and it is too early to say so."""


def offer_of(mirror: Mirror) -> Offer:
    leaf, options = mirror.snapshot.leaf, mirror.snapshot.cluster.tree.resources
    offered = free(mirror.members, leaf.usage, options)
    largest = _encode(offered.largest).decode() if offered.largest else ""
    if mirror.node is None:
        return Offer(offered.capacity, offered.allocatable, largest, written_exactly(mirror.now))
    status = mirror.node.status
    present = Offer(status.capacity, status.allocatable, mirror.said(names.LARGEST_FREE), mirror.said(names.WRITTEN_AT))
    capacity = _settled(status.capacity, offered.capacity)
    allocatable = _settled(status.allocatable, offered.allocatable)
    if capacity is status.capacity and allocatable is status.allocatable and largest == present.largest:
        return present
    until = _held_until(present.written_at, mirror.now)
    if until is not None:
        return replace(present, held_until=until)
    return Offer(capacity, allocatable, largest, written_exactly(mirror.now))


def _held_until(written_at: str, now: datetime) -> datetime | None:
    """None where it may be written. A time ahead of our clock holds nothing back: somebody's clock is wrong."""
    last = read(written_at)
    return last + PACE if last is not None and last <= now < last + PACE else None


def _settled(shown: dict[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """The amounts that are wanted, in the words that are there; the very same where none differs."""
    changed = changes(shown, wanted)
    if not changed:
        return shown
    kept = {name: text for name, text in shown.items() if name not in changed}
    return kept | {name: text for name, text in changed.items() if text is not None}
