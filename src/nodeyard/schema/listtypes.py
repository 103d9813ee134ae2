"""Lists that are sets or maps: no two items alike, no two with the same keys."""

from __future__ import annotations

from collections.abc import Hashable

from nodeyard.kube.fields import FieldError, duplicate, index, invalid
from nodeyard.kube.gotext import plain_json
from nodeyard.kube.json import Json
from nodeyard.schema.model import Schema
from nodeyard.schema.walks import Walk, ask

_UNKEYED = object()


def list_faults(schema: Schema, obj: Json) -> list[FieldError]:
    return ask("lists", _question, schema, obj)


def _question(schema: Schema) -> Walk | None:
    find = {"set": _set_faults, "map": _map_faults}.get(schema.list_type or "")
    if find is None:
        return None
    return lambda value, path: find(schema, value, path) if isinstance(value, list) else []


def _set_faults(schema: Schema, items: list[Json], path: str) -> list[FieldError]:
    positions = _repeated([_mark(item) for item in items])
    return [duplicate(index(path, position), items[position]) for position in positions]


def _map_faults(schema: Schema, items: list[Json], path: str) -> list[FieldError]:
    for position, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            return [invalid(index(path, position), item, "must be an object for an array of list-type map")]
    names = schema.list_map_keys
    if len(names) == 1:
        name = names[0]
        marks = [_mark(item[name]) if item and name in item else _UNKEYED for item in items]
    else:
        marks = [_mark(_keys(names, item)) for item in items]
    return [duplicate(index(path, position), _keys(names, items[position])) for position in _repeated(marks)]


def _keys(names: tuple[str, ...], item: Json) -> Json:
    return {name: item[name] for name in names if name in item} if item else {}


def _repeated(marks: list[Hashable]) -> list[int]:
    """Where something occurs for the second time; the third and further are not told."""
    if len(set(marks)) == len(marks):
        return []
    seen: dict[Hashable, int] = {}
    repeated = []
    for position, mark in enumerate(marks):
        seen[mark] = seen.get(mark, 0) + 1
        if seen[mark] == 2:
            repeated.append(position)
    return repeated


def _mark(item: Json) -> Hashable:
    """What two items have in common when they are one: 1 is neither 1.0 nor true, unless deep inside."""
    if item.__class__ is str:
        return str(item)
    if isinstance(item, (dict, list)):
        return (dict, plain_json(item))
    return (item.__class__, item)
