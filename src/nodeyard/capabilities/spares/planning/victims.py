"""In which order nodes go when a template has too many.

Those already on their way first, so that a plan does not change its mind; then those that are not ready, then the empty
ones, then the rest. Within each sort the zone that has most of the template's nodes gives first, then the name decides.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.spread import usage
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_ready
from nodeyard.kube.objects import Node


def choose(nodes: Sequence[Node], template: Resolved, snapshot: SparesSnapshot, excess: int) -> list[Node]:
    """As many as there are too many."""
    if excess <= 0:
        return []
    return list(islice(_in_order(nodes, template, snapshot), excess))


def _in_order(nodes: Sequence[Node], template: Resolved, snapshot: SparesSnapshot) -> Iterator[Node]:
    pods = snapshot.pods or {}
    sorts: tuple[list[Node], ...] = ([], [], [], [])
    for node in nodes:
        if names.RELEASE in node.metadata.annotations:
            sorts[0].append(node)
        elif not is_ready(node):
            sorts[1].append(node)
        elif not pods.get(node.metadata.name):
            sorts[2].append(node)
        else:
            sorts[3].append(node)
    crowding = usage(map(template.zone_of, nodes))
    for alike in sorts:
        yield from _by_crowding(alike, template, crowding)


def _by_crowding(nodes: Iterable[Node], template: Resolved, crowding: dict[str, int]) -> Iterator[Node]:
    """Each time from the zone with the most nodes left; the counts go on to the next sort."""
    zones: dict[str, list[Node]] = {}
    for node in nodes:
        zones.setdefault(template.zone_of(node), []).append(node)
    places = dict.fromkeys(zones, 0)
    heap = [(-crowding.get(zone, 0), zone) for zone in zones]
    heapq.heapify(heap)
    while heap:
        crowd, zone = heap[0]
        yield zones[zone][places[zone]]
        places[zone] += 1
        crowding[zone] = -crowd - 1
        if places[zone] == len(zones[zone]):
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (crowd + 1, zone))
