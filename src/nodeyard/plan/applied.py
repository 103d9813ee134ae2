"""What a server-side apply makes of an object, as far as that can be told without its schema.

Members are set, named items of lists are merged by their name, anything else is replaced. Nothing is removed: which
fields an apply gives up only the server knows. It serves to show a change beforehand, and afterwards to tell whether an
apply or a create whose answer was lost has happened.
"""

from __future__ import annotations

from nodeyard.kube.json import Json, Object
from nodeyard.kube.patch import is_same
from nodeyard.plan.lists import is_set, keys_of, name_of


def applied(obj: Object, fields: Object) -> Object:
    """The object with these fields; the very same object where it has them all."""
    result = obj
    for name, value in fields.items():
        if value is None:
            continue
        current = obj.get(name)
        merged = _merged(name, current, value)
        if merged is current:
            continue
        if result is obj:
            result = dict(obj)
        result[name] = merged
    return result


def has_fields(obj: Object, fields: Object) -> bool:
    """Whether an apply of these fields would change nothing."""
    return applied(obj, fields) is obj


def _merged(name: str, current: Json, value: Json) -> Json:
    if type(value) is str:
        return current if current == value else value
    if isinstance(current, dict) and isinstance(value, dict):
        return applied(current, value)
    if isinstance(current, list) and isinstance(value, list):
        return _merged_list(name, current, value)
    if is_same(current, value) or (current is None and value in ({}, [])):
        return current
    return value


def _merged_list(name: str, current: list[Json], items: list[Json]) -> list[Json]:
    if is_set(name, current, items):
        missing = [item for item in items if item not in current]
        return [*current, *missing] if missing else current
    keys = keys_of(name, current, items)
    if not keys:
        return current if is_same(current, items) else items
    wanted = {name_of(item, keys): item for item in items}
    merged = [applied(item, wanted.pop(name_of(item, keys), {})) for item in current] + list(wanted.values())
    is_unchanged = len(merged) == len(current) and all(map(lambda one, other: one is other, merged, current))
    return current if is_unchanged else merged
