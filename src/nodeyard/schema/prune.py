"""Fields that a schema does not know: dropped, and named.

The object given is left as it is; what comes back shares everything that did not change.
"""

from __future__ import annotations

from nodeyard.kube.json import Json, Object
from nodeyard.schema.compile import OPEN
from nodeyard.schema.embedded import META_FIELDS, ReadMetadata, read_resource
from nodeyard.schema.model import Schema

_BUILT_IN_MARK = "resourceVersion"


def prune(schema: Schema, obj: Object, read_metadata: ReadMetadata | None = None) -> tuple[Object, list[str]]:
    """The object without unknown fields, and their paths in the server's order: metadata's, the rest, embedded ones'.

    Given how metadata is read, that is done too: for the object and for every resource embedded in it. Raises
    CoercionError where metadata cannot be read.
    """
    unknown: list[str] = []
    pruned: Object = _object(schema, obj, "", unknown, keeps=schema.preserve_unknown, is_root=True)
    unknown.sort()
    if read_metadata is None:
        return pruned, unknown
    pruned, own, embedded = read_resource(schema, pruned, read_metadata)
    return pruned, own + unknown + embedded


def prune_value(schema: Schema, value: Json) -> Json:
    """A part of an object without unknown fields; the very value where there are none."""
    if value.__class__ is not dict and value.__class__ is not list:
        return value
    return _value(schema, value, "", [], keeps=schema.preserve_unknown)


def _value(schema: Schema, value: Json, path: str, unknown: list[str], *, keeps: bool) -> Json:
    """`keeps`: unknown fields stay; it reaches through lists, but not below a field that has a schema."""
    if value.__class__ is dict:
        return _object(schema, value, path, unknown, keeps=keeps, is_root=False)
    return _list(schema, value, path, unknown, keeps=keeps)


def _object(schema: Schema, value: Object, path: str, unknown: list[str], *, keeps: bool, is_root: bool) -> Object:
    properties, additional = schema.properties, schema.additional
    implicit = META_FIELDS if schema.embedded or (is_root and not _is_built_in(schema)) else ()
    changes: Object | None = None
    dropped: list[str] | None = None
    for name, item in value.items():
        if name in implicit:
            continue
        child = properties.get(name, additional)
        if child is None:
            if not keeps:
                dropped = dropped or []
                dropped.append(name)
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
    """A built-in type describes its metadata; a CRD cannot say more of it than how the object may be named."""
    metadata = schema.properties.get("metadata")
    return metadata is not None and _BUILT_IN_MARK in metadata.properties
