"""Merging an applied configuration into the live value.

The configuration's leaves win; nothing is removed. Where a list has parts, items that both have are merged, those that
only one has are kept, and the configuration's items keep their order. Whatever the merge leaves as it was is the same
object as before.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Iterator

from nodeyard.apiserver.managed_fields.type_shape import Kind, Shape, as_list, as_map
from nodeyard.kube.json import Json, json_equal


def merge(shape: Shape, live: Json, config: Json) -> Json:
    """`live` with everything that `config` sets. Raises ShapeError where list items cannot be told apart."""
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
    """Both lists in one: live items stay around the shared items they stood around, as far as the new order allows."""
    wanted = dict(zip(shape.elements(config), config, strict=True))
    standing = list(zip(shape.elements(live), live, strict=True))
    present = _distinct(standing)
    coming = deque(wanted)
    shared = deque(element for element in wanted if element in present)
    done: set[str] = set()
    place = 0
    while place < len(standing) or coming:
        if place < len(standing):
            element, item = standing[place]
            if element not in wanted:
                yield item
                place += 1
                continue
            if coming and element != coming[0] and shared and element != shared[0]:
                # The configuration has this one elsewhere.
                place += 1
                continue
            if element in done or (coming and element == coming[0]):
                place += 1
        if coming:
            element = coming.popleft()
            done.add(element)
            if shared and shared[0] == element:
                shared.popleft()
            yield merge(shape.item, present[element], wanted[element]) if element in present else wanted[element]


def _distinct(standing: list[tuple[str, Json]]) -> dict[str, Json]:
    """Items by element; duplicates count as null, for there is no telling which of them is meant."""
    found: dict[str, Json] = {}
    for element, item in standing:
        found[element] = None if element in found else item
    return found
