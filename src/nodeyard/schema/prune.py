"""Prunes fields that a schema does not specify, and returns their paths.

The input is not changed; the result shares all unchanged parts with it.
"""

from __future__ import annotations

from nodeyard.kube.json import Json, Object
from nodeyard.schema.compile import OPEN
from nodeyard.schema.embedded import META_FIELDS, ReadMetadata, read_resource
from nodeyard.schema.model import Schema


def prune(schema: Schema, obj: Object, read_metadata: ReadMetadata | None = None) -> tuple[Object, list[str]]:
    """Prune an object. Return it with the unknown paths in the server's order: metadata, the rest, embedded metadata.

    With `read_metadata`, metadata of the object and of embedded resources is decoded too. Raises CoercionError if it
    cannot be decoded.
    """
    unknown: list[str] = []
    pruned: Object = _object(schema, obj, "", unknown, keeps=schema.preserve_unknown, is_root=True)
    unknown.sort()
    if read_metadata is None:
        return pruned, unknown
    pruned, own, embedded = read_resource(schema, pruned, read_metadata)
    return pruned, own + unknown + embedded


def prune_value(schema: Schema, value: Json) -> Json:
    """Prune a part of an object. Return the same value if nothing is unknown."""
    if value.__class__ is not dict and value.__class__ is not list:
        return value
    return _value(schema, value, "", [], keeps=schema.preserve_unknown)


def _value(schema: Schema, value: Json, path: str, unknown: list[str], *, keeps: bool) -> Json:
    """Prune a value. `keeps` preserves unknown fields; it extends through lists, but not below a specified field."""
    if value.__class__ is dict:
        return _object(schema, value, path, unknown, keeps=keeps, is_root=False)
    return _list(schema, value, path, unknown, keeps=keeps)


def _object(schema: Schema, value: Object, path: str, unknown: list[str], *, keeps: bool, is_root: bool) -> Object:
    properties, additional = schema.properties, schema.additional
    implicit = META_FIELDS if schema.embedded or (is_root and not _is_built_in(schema)) else ()
    changes: Object | None = None
    dropped: dict[str, None] | None = None
    for name, item in value.items():
        if name in implicit:
            continue
        child = properties.get(name, additional)
        if child is None:
            if not keeps:
                dropped = dropped or {}
                dropped[name] = None
            continue
        if item.__class__ is dict or item.__class__ is list:
            below = f"{path}.{name}" if path else name
            kept = _value(child, item, below, unknown, keeps=child.preserve_unknown)
            if kept is not item:
                changes = changes or {}
                changes[name] = kept
    if dropped:
        unknown.extend(f"{path}.{name}" if path else name for name in dropped)
        value = {name: item for name, item in value.items() if name not in dropped}
    return {**value, **changes} if changes else value


def _list(schema: Schema, value: list[Json], path: str, unknown: list[str], *, keeps: bool) -> list[Json]:
    items = schema.items
    if items is None:
        if keeps:
            return value
        items = OPEN
    keeps = keeps or items.preserve_unknown
    changes: dict[int, Json] | None = None
    for position, item in enumerate(value):
        if item.__class__ is dict or item.__class__ is list:
            kept = _value(items, item, f"{path}[{position}]", unknown, keeps=keeps)
            if kept is not item:
                changes = changes or {}
                changes[position] = kept
    if not changes:
        return value
    return [changes.get(position, item) for position, item in enumerate(value)]


def _is_built_in(schema: Schema) -> bool:
    """Return whether the schema is of a built-in kind: only those specify the fields of metadata."""
    metadata = schema.properties.get("metadata")
    return metadata is not None and "resourceVersion" in metadata.properties
