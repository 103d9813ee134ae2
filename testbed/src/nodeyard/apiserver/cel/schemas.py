"""Schemas in CEL: the type of `self`, and the conversion of JSON to values of that type.

Only what has a type is visible. An object has the declared fields, under escaped names; a null field is absent.
Objects at the root of a resource have `apiVersion`, `kind`, `metadata.name` and `metadata.generateName`, and no other
metadata.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.cel.identifiers import escape
from nodeyard.apiserver.cel.timestamps import parse_date, parse_duration_field, parse_timestamp
from nodeyard.apiserver.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_type,
)
from nodeyard.apiserver.cel.values import MISSING, MapList, ObjectValue, SetList
from nodeyard.schema.model import Schema

Adapter = Callable[[Any], Any]

_SCALARS = {"boolean": BOOL, "number": DOUBLE, "integer": INT}
_STRINGS = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}
_META = ("kind", "apiVersion")
_NAMES = ("name", "generateName")


def with_object_meta(schema: Schema) -> Schema:
    """Return the schema of a resource's root with kind, apiVersion and the two names."""
    metadata = schema.properties.get("metadata")
    if (
        metadata is not None
        and metadata.type == "object"
        and all(_is_string(metadata.properties.get(name)) for name in _NAMES)
        and all(_is_string(schema.properties.get(name)) for name in _META)
    ):
        return schema
    string = Schema(type="string")
    names = Schema(type="object", properties=dict.fromkeys(_NAMES, string), preserve_unknown=True)
    return replace(schema, properties={**schema.properties, **dict.fromkeys(_META, string), "metadata": names})


def _is_string(schema: Schema | None) -> bool:
    return schema is not None and schema.type == "string"


def _is_map(schema: Schema) -> bool:
    """True if the schema is a map with a value schema; `additionalProperties: true` has none."""
    value = schema.additional
    return value is not None and (bool(value.type) or value.int_or_string or value.preserve_unknown)


# types


def declare(schema: Schema, name: str, *, is_root: bool = False) -> Type | None:
    """Return the type of values with this schema, or None if expressions cannot access them."""
    if schema.int_or_string:
        return DYN
    if is_root or schema.embedded:
        schema = with_object_meta(schema)
    if schema.type == "array":
        element = declare(schema.items, f"{name}.@idx") if schema.items is not None else None
        return list_of(element) if element is not None else None
    if schema.type == "object":
        if not _is_map(schema) or schema.additional is None:
            return object_type(name, _SchemaFields(schema, name))
        value = declare(schema.additional, f"{name}.@elem")
        return map_of(STRING, value) if value is not None else None
    if schema.type == "string":
        return _STRINGS.get(schema.format, STRING)
    return _SCALARS.get(schema.type)


class _SchemaFields:
    """The fields of an object type, declared on first use."""

    def __init__(self, schema: Schema, name: str) -> None:
        self._name = name
        self._properties = {escape(property_name): s for property_name, s in schema.properties.items()}
        self._types: dict[str, Type | None] = {}

    def find(self, name: str) -> Type | None:
        if name not in self._types:
            schema = self._properties.get(name)
            self._types[name] = declare(schema, f"{self._name}.{name}") if schema is not None else None
        return self._types[name]


# values


def adapter(schema: Schema, *, is_root: bool = False) -> Adapter | None:
    """Return the conversion of JSON with this schema, or None if it needs none."""
    if schema.int_or_string:
        return None
    if is_root or schema.embedded:
        return _ObjectShape(with_object_meta(schema)).adapt
    if schema.type == "array" and schema.items is not None:
        return _list_adapter(schema, adapter(schema.items))
    if schema.type == "object":
        return _object_adapter(schema)
    if schema.type == "string":
        return _STRING_ADAPTERS.get(schema.format)
    return float if schema.type == "number" else None


def _list_adapter(schema: Schema, item: Adapter | None) -> Adapter | None:
    def items(value: list[Any]) -> list[Any]:
        return value if item is None else [entry if entry is None else item(entry) for entry in value]

    if schema.list_type == "set":
        return lambda value: SetList(items(value))
    if schema.list_type == "map":
        keys = schema.list_map_keys
        return lambda value: MapList(items(value), keys)
    return items if item is not None else None


def _object_adapter(schema: Schema) -> Adapter | None:
    if schema.additional is not None and _is_map(schema):
        value = adapter(schema.additional)
        if value is None:
            return None
        convert = value
        return lambda raw: {key: entry if entry is None else convert(entry) for key, entry in raw.items()}
    return None if _is_plain(schema) else _ObjectShape(schema).adapt


def _is_plain(schema: Schema) -> bool:
    """True if objects need no conversion: all fields are declared, not escaped and never null."""
    if schema.preserve_unknown or schema.additional is not None:
        return False
    return all(
        escape(name) == name and not s.nullable and (s.type or s.int_or_string) and adapter(s) is None
        for name, s in schema.properties.items()
    )


class _ObjectShape:
    """The fields of objects by escaped name, with their conversions."""

    def __init__(self, schema: Schema) -> None:
        self._schemas = schema.properties
        self._names = {escape(name) or name: name for name in schema.properties}
        self._adapters: dict[str, Adapter | None] = {}

    def adapt(self, raw: Any) -> ObjectValue:
        return ObjectValue(raw, self)

    def field(self, raw: dict[str, Any], name: str) -> Any:
        own_name = self._names.get(name)
        value = raw.get(own_name) if own_name is not None else None
        if value is None or own_name is None:
            return MISSING
        if own_name not in self._adapters:
            self._adapters[own_name] = adapter(self._schemas[own_name])
        convert = self._adapters[own_name]
        return value if convert is None else convert(value)

    def names(self, raw: dict[str, Any]) -> Iterator[str]:
        return (name for name, own_name in self._names.items() if own_name in raw)

    def undeclared(self, raw: dict[str, Any]) -> Iterator[str]:
        return (name for name in raw if name not in self._schemas)


def _parsed(parse: Callable[[str], Any], what: str) -> Adapter:
    def convert(text: str) -> Any:
        value = parse(text)
        if value is None:
            raise EvaluationError(f"Invalid {what} {text}")
        return value

    return convert


def _decode(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


_STRING_ADAPTERS: dict[str, Adapter] = {
    "byte": _parsed(_decode, "byte formatted string"),
    "duration": _parsed(parse_duration_field, "duration"),
    "date": _parsed(parse_date, "date formatted string"),
    "date-time": _parsed(parse_timestamp, "date-time formatted string"),
}
