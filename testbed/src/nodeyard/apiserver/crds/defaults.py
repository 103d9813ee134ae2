"""Defaulting of custom resources by their schema.

A field that is missing, or null although it is not nullable, gets its default; such a null without a default is
dropped, except from a list. Defaults apply to items, map entries and defaults as well. The result shares everything
that did not change; if nothing changed it is the very same object.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nodeyard.kube.json import Json, Object
from nodeyard.schema.compile import OPEN
from nodeyard.schema.model import UNSET, Schema

Fill = Callable[[Json], Json]

_DROPPED = object()


class _Field(NamedTuple):
    replaces_null: bool
    default: Json
    fill: Fill


def default(schema: Schema, obj: Object) -> Object:
    filled: Object = _fill_of(schema)(obj)
    return filled


def _fill_of(schema: Schema) -> Fill:
    known: Fill | None = schema.compiled.get("defaults")
    if known is None:
        known = schema.compiled["defaults"] = _compiled(schema)
    return known


def _field(schema: Schema) -> _Field:
    value = schema.default
    fill = _fill_of(schema)
    if value is not UNSET and value.__class__ in (dict, list):
        value = fill(value)
    return _Field(not schema.nullable, value, fill)


def _compiled(schema: Schema) -> Fill:
    fields = {name: _field(child) for name, child in schema.properties.items()}
    missing = [(name, field.default) for name, field in fields.items() if field.default is not UNSET]
    additional = _field(schema.additional) if schema.additional not in (None, OPEN) else None
    items = _field(schema.items) if schema.items is not None else None

    def fill(value: Json) -> Json:
        if value.__class__ is dict:
            return _fill_object(value, fields, missing, additional) if fields or additional is not None else value
        return _fill_list(value, items) if items is not None else value

    return fill


def _fill_object(
    value: Object, fields: dict[str, _Field], missing: list[tuple[str, Json]], additional: _Field | None
) -> Object:
    changes: Object = {}
    for name, item in value.items():
        if item is None or item.__class__ is dict or item.__class__ is list:
            field = fields.get(name, additional)
            if field is None:
                continue
            new = _filled(field, item)
            if new is not item:
                changes[name] = new
    for name, preset in missing:
        if name not in value:
            changes[name] = preset
    if not changes:
        return value
    return {name: item for name, item in {**value, **changes}.items() if item is not _DROPPED}


def _fill_list(value: list[Json], items: _Field) -> list[Json]:
    changes: dict[int, Json] = {}
    for position, item in enumerate(value):
        if item is None or item.__class__ is dict or item.__class__ is list:
            new = _filled(items, item)
            if new is not item and new is not _DROPPED:
                changes[position] = new
    if not changes:
        return value
    return [changes.get(position, item) for position, item in enumerate(value)]


def _filled(field: _Field, item: Json) -> Json:
    if item is not None:
        return field.fill(item)
    if not field.replaces_null:
        return None
    return _DROPPED if field.default is UNSET else field.default
