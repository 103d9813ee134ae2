"""Merge of an applied configuration into the live value.

Leaves of the configuration win; nothing is removed. In sets and keyed lists, items of both are merged, other items are
kept, and the configuration's items keep their order. Unchanged parts are the same objects as before.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterator

from nodeyard.apiserver.managed_fields.type_shape import Kind, Shape, as_list, as_map
from nodeyard.kube.json import Json, json_equal


def merge(shape: Shape, live: Json, config: Json) -> Json:
    """Set in `live` everything that `config` sets. Raises ShapeError if a list item has no valid key."""
    if live is config:
        return live
    kind = shape.kind(config)
    if kind is Kind.MAP and not shape.is_atomic_map:
        if as_map(live) or as_map(config):
            return _merge_maps(shape, as_map(live), as_map(config))
    elif kind is Kind.LIST and shape.list_type != "atomic" and (as_list(live) or as_list(config)):
        return _merge_lists(shape, as_list(live), as_list(config))
    return live if json_equal(live, config) else config


def _merge_maps(shape: Shape, live: dict[str, Json], config: dict[str, Json]) -> dict[str, Json]:
    merged = dict(live)
    for name, value in config.items():
        merged[name] = merge(shape.member(name), live[name], value) if name in live else value
    is_unchanged = len(merged) == len(live) and all(live[name] is value for name, value in merged.items())
    return live if is_unchanged else merged


def _merge_lists(shape: Shape, live: list[Json], config: list[Json]) -> list[Json]:
    merged = list(_interleaved(shape, live, config))
    is_unchanged = len(merged) == len(live) and all(map(operator.is_, live, merged))
    return live if is_unchanged else merged


def _interleaved(shape: Shape, live: list[Json], config: list[Json]) -> Iterator[Json]:
    """Yield the items of both lists: live items keep their place among shared items as far as the new order allows."""
    wanted = dict(zip(shape.elements(config), config, strict=True))
    live_items = list(zip(shape.elements(live), live, strict=True))
    present = _distinct(live_items)
    applied = deque(wanted)
    shared = deque(element for element in wanted if element in present)
    done: set[str] = set()
    place = 0
    while place < len(live_items) or applied:
        if place < len(live_items):
            element, item = live_items[place]
            if element not in wanted:
                yield item
                place += 1
                continue
            if applied and element != applied[0] and shared and element != shared[0]:
                # The configuration has this item at another place.
                place += 1
                continue
            if element in done or (applied and element == applied[0]):
                place += 1
        if applied:
            element = applied.popleft()
            done.add(element)
            if shared and shared[0] == element:
                shared.popleft()
            yield merge(shape.item, present[element], wanted[element]) if element in present else wanted[element]


def _distinct(live_items: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return the items by element; duplicates count as null."""
    found: dict[str, Json] = {}
    for element, item in live_items:
        found[element] = None if element in found else item
    return found
