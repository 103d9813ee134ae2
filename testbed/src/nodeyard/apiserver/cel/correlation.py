"""What a value was before: which old item belongs to a new one, and whether anything around it changed.

Rules see the old value as `oldSelf` where there is one to be found: fields and map entries by name, list items by the
keys of a list of type map. A rule that fails on what did not change is let pass, so that a stricter schema does not
lock objects that were stored before.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from nodeyard.schema.model import Schema
from nodeyard.schema.ratcheting import Pair, is_unchanged


class Correlation:
    """A value and its old one, or nothing old; below it remembers the last pair that was matched."""

    def __init__(self, schema: Schema, new: Any, old: Any, parent: Correlation | None = None) -> None:
        self._pair = Pair(schema, new, old)
        self._is_matched = old is not None
        self._parent = parent

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether the value, or else the nearest value around it that has an old one, is as it was."""
        if self._is_matched:
            return is_unchanged(self._pair)
        return self._parent is not None and self._parent.is_unchanged


class OldItems:
    """The old items of a list, found by the keys of new ones."""

    def __init__(self, schema: Schema, old: Any) -> None:
        self._keys = schema.list_map_keys if schema.list_type == "map" else ()
        self._items: dict[Any, Any] = {}
        if self._keys and isinstance(old, list):
            for item in old:
                self._items.setdefault(self._key(item), item)

    def find(self, item: Any) -> Any:
        key = self._key(item)
        return self._items.get(key) if key is not None else None

    def _key(self, item: Any) -> Any:
        """None for what has no key: a part is missing or not a scalar."""
        if not self._keys or not isinstance(item, dict):
            return None
        values = [item.get(name) for name in self._keys]
        if any(value is None or isinstance(value, dict | list) for value in values):
            return None
        return tuple((value.__class__, value) for value in values)
