"""Checks lists of type set and map for duplicate items and keys."""

from __future__ import annotations

from collections.abc import Hashable

from nodeyard.kube.fields import FieldError, duplicate, index, invalid
from nodeyard.kube.goformat import plain_json
from nodeyard.kube.json import Json
from nodeyard.schema.model import Schema
from nodeyard.schema.tree_walk import Walk, walk_tree

_UNKEYED = object()


def list_faults(schema: Schema, obj: Json) -> list[FieldError]:
    """Return a fault for every duplicate in lists of type set or map."""
    return walk_tree("lists", _node_check, schema, obj)


def _node_check(schema: Schema) -> Walk | None:
    find = {"set": _set_faults, "map": _map_faults}.get(schema.list_type or "")
    if find is None:
        return None
    return lambda value, path: find(schema, value, path) if isinstance(value, list) else []


def _set_faults(schema: Schema, items: list[Json], path: str) -> list[FieldError]:
    positions = _find_repeated([_identity(item) for item in items])
    return [duplicate(index(path, position), items[position]) for position in positions]


def _map_faults(schema: Schema, items: list[Json], path: str) -> list[FieldError]:
    for position, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            return [invalid(index(path, position), item, "must be an object for an array of list-type map")]
    names = schema.list_map_keys
    if len(names) == 1:
        name = names[0]
        marks = [_identity(item[name]) if item and name in item else _UNKEYED for item in items]
    else:
        marks = [_identity(_keys(names, item)) for item in items]
    return [duplicate(index(path, position), _keys(names, items[position])) for position in _find_repeated(marks)]


def _keys(names: tuple[str, ...], item: Json) -> Json:
    return {name: item[name] for name in names if name in item} if item else {}


def _find_repeated(marks: list[Hashable]) -> list[int]:
    """Return the positions of second occurrences; the server does not report further ones."""
    if len(set(marks)) == len(marks):
        return []
    seen: dict[Hashable, int] = {}
    repeated = []
    for position, mark in enumerate(marks):
        seen[mark] = seen.get(mark, 0) + 1
        if seen[mark] == 2:
            repeated.append(position)
    return repeated


def _identity(item: Json) -> Hashable:
    """Return the identity of an item: 1, 1.0 and true differ at the top level, but not inside objects and lists."""
    if item.__class__ is str:
        return str(item)
    if isinstance(item, (dict, list)):
        return (dict, plain_json(item))
    return (item.__class__, item)
