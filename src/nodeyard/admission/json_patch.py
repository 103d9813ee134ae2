"""Computes the JSON patch (RFC 6902) between two objects, the answer of a mutating webhook. Pure.

    difference({"a": 1}, {"a": 2, "b": 3})  ->  replace /a 2, add /b 3

Lists are compared item by item from the front, so the operations must be applied in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from nodeyard.kube.json import Json, Object, json_equal


def difference(old: Json, new: Json, path: str = "") -> Iterator[Object]:
    if json_equal(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _members(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _items(old, new, path)
    else:
        yield {"op": "replace", "path": path, "value": new}


def _members(old: Object, new: Object, path: str) -> Iterator[Object]:
    for name, value in old.items():
        if name not in new:
            yield {"op": "remove", "path": _join(path, name)}
        elif value is not new[name]:  # unchanged parts are shared and need no walk
            yield from difference(value, new[name], _join(path, name))
    for name, value in new.items():
        if name not in old:
            yield {"op": "add", "path": _join(path, name), "value": value}


def _items(old: list[Json], new: list[Json], path: str) -> Iterator[Object]:
    for index, (before, after) in enumerate(zip(old, new, strict=False)):
        yield from difference(before, after, f"{path}/{index}")
    for index in range(len(old) - 1, len(new) - 1, -1):
        yield {"op": "remove", "path": f"{path}/{index}"}
    for value in new[len(old) :]:
        yield {"op": "add", "path": f"{path}/-", "value": value}


def _join(path: str, name: str) -> str:
    return f"{path}/{_escape(name)}"


@lru_cache(maxsize=1024)
def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
