"""The rate at which lost nodes are tainted for eviction, by zone.

One lost node is a broken node; many at once are more likely a network failure, in which eviction does harm. A healthy
zone releases one node in ten seconds; a disrupted one none, or one in a hundred seconds if it is large. If no node is
ready anywhere, the server itself is cut off and nothing is evicted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

EVICTION_RATE: Final = 0.1
SECONDARY_RATE: Final = 0.01
LARGE_ZONE: Final = 50
UNHEALTHY_SHARE: Final = 0.55


class ZoneState(Enum):
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


@dataclass(slots=True)
class _Zone:
    ready: int = 0
    lost: int = 0
    waiting: dict[str, None] = field(default_factory=dict)
    """Lost nodes in the order of their loss."""
    next_at: float = 0.0

    @property
    def state(self) -> ZoneState:
        if self.ready == 0 and self.lost > 0:
            return ZoneState.FULL
        if self.lost > 2 and self.lost / (self.lost + self.ready) >= UNHEALTHY_SHARE:
            return ZoneState.PARTIAL
        return ZoneState.NORMAL

    @property
    def rate(self) -> float:
        if self.state is ZoneState.PARTIAL:
            return SECONDARY_RATE if self.ready + self.lost > LARGE_ZONE else 0.0
        return EVICTION_RATE


class NodeZones:
    def __init__(self) -> None:
        self._zones: dict[str, _Zone] = {}
        self._nodes: dict[str, tuple[str, bool]] = {}
        self._ready = 0

    def set(self, node: str, zone: str, *, is_ready: bool) -> None:
        known = self._nodes.get(node)
        if known == (zone, is_ready):
            return
        if known is not None:
            self._count(*known, -1)
            if known[0] != zone:
                self._drop_waiting(node, known[0])
        self._nodes[node] = (zone, is_ready)
        self._count(zone, is_ready, 1)

    def forget(self, node: str) -> None:
        known = self._nodes.pop(node, None)
        if known is not None:
            self._count(*known, -1)
            self._drop_waiting(node, known[0])

    @property
    def is_fully_disrupted(self) -> bool:
        """True if no node is ready in any zone."""
        return bool(self._nodes) and not self._ready

    def state(self, zone: str) -> ZoneState:
        return self._zones[zone].state

    def nodes(self) -> list[str]:
        return list(self._nodes)

    def wait(self, node: str, zone: str) -> None:
        self._zones.setdefault(zone, _Zone()).waiting.setdefault(node)

    def stop_waiting(self, node: str) -> None:
        known = self._nodes.get(node)
        if known is not None:
            self._drop_waiting(node, known[0])

    def release(self, zone: str, now: float) -> tuple[str | None, float | None]:
        """Return the next node to evict now, if any, and when to ask again."""
        found = self._zones.get(zone)
        if found is None or not found.waiting or self.is_fully_disrupted or not found.rate:
            return None, None
        if now < found.next_at:
            return None, found.next_at - now
        node = next(iter(found.waiting))
        del found.waiting[node]
        found.next_at = now + 1 / found.rate
        return node, 1 / found.rate if found.waiting else None

    def _count(self, zone: str, is_ready: bool, change: int) -> None:
        found = self._zones.setdefault(zone, _Zone())
        if is_ready:
            found.ready += change
            self._ready += change
        else:
            found.lost += change
        if not found.ready and not found.lost and not found.waiting:
            del self._zones[zone]

    def _drop_waiting(self, node: str, zone: str) -> None:
        found = self._zones.get(zone)
        if found is not None:
            found.waiting.pop(node, None)
