"""Zone spread: the order in which spares are claimed and surplus nodes are released.

Claims come from the zone in which the template has the fewest nodes, then by name; nodes without a zone come last.
Releases come from the zone in which it has the most nodes, then by name. Both orders are deterministic.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.spare_index import Spare, ZoneQueue
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_ready
from nodeyard.kube.objects import Node


def count_zones(nodes: Iterable[Node], template: Resolved) -> Counter[str]:
    """Count the nodes of each zone; nodes without a zone are not counted."""
    return Counter(zone for zone in map(template.zone_of, nodes) if zone)


class Picker:
    """Picks spares for one template from its queue."""

    def __init__(self, queue: ZoneQueue, used: Mapping[str, int]) -> None:
        self._queue = queue
        self._zones = [(used.get(zone, 0), zone) for zone in queue.by_zone if zone]
        heapq.heapify(self._zones)

    def take(self, count: int) -> Iterator[Spare]:
        """Yield up to `count` spares."""
        for _ in range(count):
            spare = self.next()
            if spare is None:
                return
            yield spare

    def next(self) -> Spare | None:
        """Return the next spare and make it unavailable to others; None if none is left."""
        while self._zones:
            uses, zone = self._zones[0]
            spare = self._queue.take_first(zone)
            if spare is None:
                heapq.heappop(self._zones)
                continue
            heapq.heapreplace(self._zones, (uses + 1, zone))
            return spare
        return self._queue.take_first("")


def choose_surplus(nodes: Sequence[Node], template: Resolved, snapshot: SparesSnapshot, surplus: int) -> list[Node]:
    """Choose the nodes to release.

    Nodes already being released come first, so that a plan does not reverse the previous one; then nodes that are not
    Ready, then empty nodes, then the rest.
    """
    if surplus <= 0:
        return []
    pods = snapshot.pods or {}
    ranks: tuple[list[Node], ...] = ([], [], [], [])
    for node in nodes:
        if names.RELEASE in node.metadata.annotations:
            ranks[0].append(node)
        elif not is_ready(node):
            ranks[1].append(node)
        elif not pods.get(node.metadata.name):
            ranks[2].append(node)
        else:
            ranks[3].append(node)
    used = count_zones(nodes, template)
    ordered = (node for rank in ranks for node in _most_used_zone_first(rank, template, used))
    return list(islice(ordered, surplus))


def _most_used_zone_first(nodes: Iterable[Node], template: Resolved, used: dict[str, int]) -> Iterator[Node]:
    """Yield each node from the zone with the most nodes left. Updates `used`, which the next rank starts from."""
    by_zone: dict[str, list[Node]] = {}
    for node in nodes:
        by_zone.setdefault(template.zone_of(node), []).append(node)
    cursors = dict.fromkeys(by_zone, 0)
    heap = [(-used.get(zone, 0), zone) for zone in by_zone]
    heapq.heapify(heap)
    while heap:
        negative_count, zone = heap[0]
        yield by_zone[zone][cursors[zone]]
        cursors[zone] += 1
        used[zone] = -negative_count - 1
        if cursors[zone] == len(by_zone[zone]):
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (negative_count + 1, zone))
