"""Lists whose items have a name: by what each is known, and how that is written in a path.

Without a schema the field's own name has to tell. Items of any other list are known by a `name` that all of them have;
where they have none, or two have the same, the list is one value.
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
    """The members that tell the items of these lists apart; empty where nothing does."""
    keys = KEYS.get(field, _BY_NAME)
    for items in lists:
        if not all(isinstance(item, dict) for item in items):
            return ()
        names = {name_of(item, keys) for item in items}
        if len(names) < len(items) or (keys is _BY_NAME and "" in names):
            return ()
    return keys


def is_set(field: str, *lists: list[Json]) -> bool:
    """Whether the list is a set of words."""
    return field in SETS and all(map(_is_distinct_words, lists))


def name_of(item: Object, keys: tuple[str, ...]) -> str:
    """`node.cybozu.io/spare:NoSchedule`."""
    return ":".join(str(value) for key in keys if (value := item.get(key)) not in (None, ""))


def _is_distinct_words(items: list[Json]) -> bool:
    return all(isinstance(item, str) for item in items) and len(set(items)) == len(items)
