"""Correlation of new and old values, for ratcheting.

`oldSelf` is the old value: of fields and map entries by name, of list items by the keys of a list of type map. A rule
that fails on an unchanged value is tolerated, so that a stricter schema does not block updates of stored objects.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from nodeyard.schema.model import Schema
from nodeyard.schema.ratcheting import Pair, is_unchanged


class Correlation:
    """A value and its old value, if any, and the correlation of its parent."""

    def __init__(self, schema: Schema, new: Any, old: Any, parent: Correlation | None = None) -> None:
        self._pair = Pair(schema, new, old)
        self._is_matched = old is not None
        self._parent = parent

    @cached_property
    def is_unchanged(self) -> bool:
        """True if the value, or its nearest ancestor with an old value, is unchanged."""
        if self._is_matched:
            return is_unchanged(self._pair)
        return self._parent is not None and self._parent.is_unchanged


class OldItems:
    """The old items of a list by the keys of new ones."""

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
        """Return the key of an item, or None if a part is missing or not a scalar."""
        if not self._keys or not isinstance(item, dict):
            return None
        values = [item.get(name) for name in self._keys]
        if any(value is None or isinstance(value, dict | list) for value in values):
            return None
        return tuple((value.__class__, value) for value in values)
