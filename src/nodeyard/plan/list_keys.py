"""Keys of list items (`x-kubernetes-list-map-keys`), and how they are written in a path.

There is no schema here, so the field name decides. Items of any other list are keyed by `name` if all items have a
unique one; otherwise the list is treated as one value.
"""

from __future__ import annotations

from typing import Final

from nodeyard.kube.json import Json, Object

KEYS: Final[dict[str, tuple[str, ...]]] = {
    "taints": ("key", "effect"),
    "tolerations": ("key", "operator", "value", "effect"),
    "conditions": ("type",),
    "addresses": ("type", "address"),
    "ownerReferences": ("kind", "name", "uid"),
}
SETS: Final = frozenset({"finalizers"})
_BY_NAME = ("name",)


def keys_of(field: str, *lists: list[Json]) -> tuple[str, ...]:
    """Return the fields that identify the items of these lists; empty if none do."""
    keys = KEYS.get(field, _BY_NAME)
    for items in lists:
        if not all(isinstance(item, dict) for item in items):
            return ()
        names = {name_of(item, keys) for item in items}
        if len(names) < len(items) or (keys is _BY_NAME and "" in names):
            return ()
    return keys


def is_set(field: str, *lists: list[Json]) -> bool:
    """Return True if the field is a set of strings, such as finalizers."""
    return field in SETS and all(map(_is_distinct_words, lists))


def name_of(item: Object, keys: tuple[str, ...]) -> str:
    """Return the item's key as in a path, such as `node.cybozu.io/spare:NoSchedule`."""
    return ":".join(str(value) for key in keys if (value := item.get(key)) not in (None, ""))


def _is_distinct_words(items: list[Json]) -> bool:
    return all(isinstance(item, str) for item in items) and len(set(items)) == len(items)
