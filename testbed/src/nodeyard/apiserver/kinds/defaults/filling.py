"""How defaults are put into an object: only where it says nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodeyard.kube.json import Object


def fill(obj: Object, defaults: Object) -> Object:
    """The object with what it lacks."""
    missing = {field: value for field, value in defaults.items() if obj.get(field) is None}
    return {**obj, **missing} if missing else obj


def replaced(obj: Object, **fields: Any) -> Object:
    """The object with these fields; the very same object where they are there already."""
    return obj if all(obj.get(name) is value for name, value in fields.items()) else {**obj, **fields}


def mapped(items: list[Object], change: Callable[[Object], Object]) -> list[Object]:
    """Each item changed; the very same list where none was."""
    changed = [change(item) for item in items]
    return items if all(new is old for new, old in zip(changed, items, strict=True)) else changed


def filling(defaults: Object) -> Callable[[Object], Object]:
    return lambda obj: fill(obj, defaults)
