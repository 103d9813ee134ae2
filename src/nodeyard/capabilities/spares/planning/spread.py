"""Which spare comes next: one of the zone that the template uses least, then by name, so that plans are repeatable.

Nodes that do not say which zone they are in come last, when no others are left.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

from nodeyard.capabilities.spares.planning.stock import Aisle, Spare


class Picker:
    """Picks for one template, over all aisles that it may take from."""

    def __init__(self, aisles: Iterable[Aisle], used: Mapping[str, int]) -> None:
        self._heads: dict[str, list[tuple[str, int, Aisle, Spare]]] = {}
        for order, aisle in enumerate(aisles):
            for zone in aisle.zones:
                self._offer(zone, order, aisle)
        self._zones = [(used.get(zone, 0), zone) for zone in self._heads if zone]
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
        if not heads:
            return None
        _name, order, aisle, spare = heapq.heappop(heads)
        spare.gone = True
        self._offer(zone, order, aisle)
        return spare

    def _offer(self, zone: str, order: int, aisle: Aisle) -> None:
        spare = aisle.next_in(zone)
        if spare is not None:
            heapq.heappush(self._heads.setdefault(zone, []), (spare.name, order, aisle, spare))


def usage(zones: Iterable[str]) -> Counter[str]:
    """How often each zone is used; nodes without one are not counted."""
    return Counter(zone for zone in zones if zone)
