"""Edits of objects for defaults and strategies. Results share everything that did not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodeyard.kube.json import Object


def fill(obj: Object, defaults: Object) -> Object:
    """Add the defaults of fields that are missing or null."""
    missing = {field: value for field, value in defaults.items() if obj.get(field) is None}
    return {**obj, **missing} if missing else obj


def filler(defaults: Object) -> Callable[[Object], Object]:
    return lambda obj: fill(obj, defaults)


def replace(obj: Object, **fields: Any) -> Object:
    """Set these fields; return the very same object if it has these values already."""
    return obj if all(obj.get(name) is value for name, value in fields.items()) else {**obj, **fields}


def map_items(items: list[Object], change: Callable[[Object], Object]) -> list[Object]:
    """Change each item; return the very same list if none changed."""
    changed = [change(item) for item in items]
    return items if all(new is old for new, old in zip(changed, items, strict=True)) else changed


def keep(new: Object, old: Object, field: str) -> Object:
    """Restore one field of the old object."""
    if new.get(field) is old.get(field):
        return new
    if field in old:
        return {**new, field: old[field]}
    return {name: value for name, value in new.items() if name != field}


def keep_metadata(new: Object, old: Object, *fields: str) -> Object:
    """Restore these metadata fields of the old object."""
    metadata, before = dict(new["metadata"]), old["metadata"]
    for field in fields:
        metadata.pop(field, None)
        if field in before:
            metadata[field] = before[field]
    return {**new, "metadata": metadata}
