"""Ratcheting validation: an update may keep invalid values that it does not change.

A fault is tolerated if its value, or a value that contains it, is unchanged. Old and new are matched field by field.
Items of a list of type map are matched by their keys; other lists are compared as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Json, json_equal
from nodeyard.schema.compile import OPEN
from nodeyard.schema.faults import Fault, Step
from nodeyard.schema.model import Schema


class Pair(NamedTuple):
    """A new value, its old value, and their schema."""

    schema: Schema
    new: Json
    old: Json


def is_tolerated(pair: Pair, fault: Fault) -> bool:
    """Return whether the value of a fault, or one that contains it, is unchanged."""
    if is_unchanged(pair):
        return True
    steps = fault.steps[fault.own_steps :]
    if steps and steps[-1] in ("apiVersion", "kind"):
        # Both objects are converted to the version of the request, which hides a change of these fields.
        return False
    for step in reversed(steps):
        below = _descend(pair, step)
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
            return json_equal(new, old)
        children = [_descend(pair, position) for position in range(len(new))]
    elif isinstance(new, dict) and isinstance(old, dict):
        if len(new) != len(old):
            return False
        children = [_descend(pair, name) for name in new]
    else:
        return json_equal(new, old)
    return all(child is not None and is_unchanged(child) for child in children)


def _descend(pair: Pair, step: Step) -> Pair | None:
    """Return the pair one step down; None if there is no matching old value or no schema."""
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
    """Return the list-map key of an item; None if a key is missing or not a scalar."""
    if not isinstance(item, dict) or not schema.list_map_keys:
        return None
    values = [item.get(name) for name in schema.list_map_keys]
    if any(value is None or isinstance(value, (dict, list)) for value in values):
        return None
    return tuple(quote(value) if isinstance(value, str) else f"{value.__class__.__name__} {value}" for value in values)
