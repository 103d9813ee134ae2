"""What an update may leave as it is although it is wrong.

A fault is tolerated when the value it was found in, or anything around that value, is unchanged. Old and new are
matched field by field; items of a list are matched by their keys in a list of type map, and not at all in others,
which therefore count as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

from nodeyard.kube.gotext import quote
from nodeyard.kube.json import Json
from nodeyard.schema.compile import OPEN
from nodeyard.schema.faults import Fault, Step
from nodeyard.schema.model import Schema
from nodeyard.schema.scalars import is_same


class Pair(NamedTuple):
    """A value, what it was before, and what both should be."""

    schema: Schema
    new: Json
    old: Json


def is_tolerated(pair: Pair, fault: Fault) -> bool:
    if is_unchanged(pair):
        return True
    steps = fault.steps[fault.inner :]
    if steps and steps[-1] in ("apiVersion", "kind"):
        # Both objects are converted to the version of the request, so a change there does not show.
        return False
    for step in reversed(steps):
        below = _within(pair, step)
        if below is None:
            return False
        if is_unchanged(below):
            return True
        pair = below
    return False


def is_unchanged(pair: Pair) -> bool:
    schema, new, old = pair
    if isinstance(new, list) and isinstance(old, list):
        if len(new) != len(old):
            return False
        if schema.list_type != "map":
            return is_same(new, old)
        children = [_within(pair, position) for position in range(len(new))]
    elif isinstance(new, dict) and isinstance(old, dict):
        if len(new) != len(old):
            return False
        children = [_within(pair, name) for name in new]
    else:
        return is_same(new, old)
    return all(child is not None and is_unchanged(child) for child in children)


def _within(pair: Pair, step: Step) -> Pair | None:
    """The pair one step down; None where nothing old belongs to the new, or no schema says what they are."""
    return _item(pair, step) if isinstance(step, int) else _field(pair, step)


def _field(pair: Pair, name: str) -> Pair | None:
    schema, new, old = pair
    child = schema.properties.get(name, schema.additional)
    if child is None or child is OPEN or not isinstance(old, dict) or name not in old or name not in new:
        return None
    return Pair(child, new[name], old[name])


def _item(pair: Pair, position: int) -> Pair | None:
    schema, new, old = pair
    if schema.items is None or schema.list_type != "map" or not isinstance(old, list):
        return None
    wanted = _key(schema, new[position])
    if wanted is None:
        return None
    for item in old:
        if _key(schema, item) == wanted:
            return Pair(schema.items, new[position], item)
    return None


def _key(schema: Schema, item: Json) -> tuple[str, ...] | None:
    """What tells an item from others; None when a key is missing or no scalar."""
    if not isinstance(item, dict) or not schema.list_map_keys:
        return None
    values = [item.get(name) for name in schema.list_map_keys]
    if any(value is None or isinstance(value, (dict, list)) for value in values):
        return None
    return tuple(quote(value) if isinstance(value, str) else f"{value.__class__.__name__} {value}" for value in values)
