"""Which spare comes next: one of the zone that the template uses least, then by name, so that plans are repeatable.

Nodes that do not say which zone they are in come last, when no others are left.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from nodeyard.capabilities.spares.planning.stock import Aisle, Spare


class Picker:
    """Picks for one template, over all aisles that it may take from. A zone is looked into only when its turn comes."""

    def __init__(self, aisles: Sequence[Aisle], used: Mapping[str, int]) -> None:
        self._aisles = aisles
        self._heads: dict[str, list[tuple[str, int, Spare]]] = {}
        zones = dict.fromkeys(zone for aisle in aisles for zone in aisle.zones)
        self._zones = [(used.get(zone, 0), zone) for zone in zones if zone]
        heapq.heapify(self._zones)

    def next(self) -> Spare | None:
        """The next one; the caller has it. None when nothing is left."""
        while self._zones:
            uses, zone = self._zones[0]
            spare = self._pop(zone)
            if spare is None:
                heapq.heappop(self._zones)
                continue
            heapq.heapreplace(self._zones, (uses + 1, zone))
            return spare
        return self._pop("")

    def _pop(self, zone: str) -> Spare | None:
        heads = self._heads.get(zone)
        if heads is None:
            heads = self._heads[zone] = []
            for order in range(len(self._aisles)):
                self._offer(heads, zone, order)
        if not heads:
            return None
        _name, order, spare = heapq.heappop(heads)
        spare.gone = True
        self._offer(heads, zone, order)
        return spare

    def _offer(self, heads: list[tuple[str, int, Spare]], zone: str, order: int) -> None:
        """The first that an aisle has left in the zone."""
        spare = self._aisles[order].next_in(zone)
        if spare is not None:
            heapq.heappush(heads, (spare.name, order, spare))


def usage(zones: Iterable[str]) -> Counter[str]:
    """How often each zone is used; nodes without one are not counted."""
    return Counter(zone for zone in zones if zone)
