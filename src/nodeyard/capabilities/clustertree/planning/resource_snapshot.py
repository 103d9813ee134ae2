"""Resources that a mirrored node offers. They are written when an amount changes, at most once a second.

Pods come and go all the time, and each write costs the root's API server several milliseconds. The time of the last
write is an annotation of the node, so that restarts and takeovers keep the rate limit.
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
from nodeyard.kube.timestamps import format_rfc3339_millis, parse_rfc3339_or_none

MIN_WRITE_INTERVAL: Final = timedelta(seconds=1)
_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True)
class Offer:
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    largest: str = ""
    """The largest free amount of each resource on one leaf node, as JSON; empty unless enabled."""
    written_at: str = ""
    held_until: datetime | None = None
    """Set if the amounts differ from the node's and the rate limit delays the write."""


def offer_of(mirror: Mirror) -> Offer:
    leaf, options = mirror.snapshot.leaf, mirror.snapshot.cluster.tree.resources
    offered = free(mirror.members, leaf.usage, options)
    largest = _encode(offered.largest).decode() if offered.largest else ""
    if mirror.node is None:
        return Offer(offered.capacity, offered.allocatable, largest, format_rfc3339_millis(mirror.now))
    status = mirror.node.status
    present = Offer(
        status.capacity, status.allocatable, mirror.annotation(names.LARGEST_FREE), mirror.annotation(names.WRITTEN_AT)
    )
    capacity = _keep_equal(status.capacity, offered.capacity)
    allocatable = _keep_equal(status.allocatable, offered.allocatable)
    if capacity is status.capacity and allocatable is status.allocatable and largest == present.largest:
        return present
    until = _rate_limited_until(present.written_at, mirror.now)
    if until is not None:
        return replace(present, held_until=until)
    return Offer(capacity, allocatable, largest, format_rfc3339_millis(mirror.now))


def _rate_limited_until(written_at: str, now: datetime) -> datetime | None:
    """Return None if a write is allowed. A timestamp in the future delays nothing: a clock is wrong."""
    last = parse_rfc3339_or_none(written_at)
    return last + MIN_WRITE_INTERVAL if last is not None and last <= now < last + MIN_WRITE_INTERVAL else None


def _keep_equal(shown: dict[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Keep the present text of equal amounts. Return `shown` itself if no amount differs."""
    changed = changes(shown, wanted)
    if not changed:
        return shown
    kept = {name: text for name, text in shown.items() if name not in changed}
    return kept | {name: text for name, text in changed.items() if text is not None}
