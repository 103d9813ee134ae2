"""Preview of a server-side apply, as far as possible without the object's schema.

Fields are set, list items with a key are merged by that key, anything else is replaced. Nothing is removed: only the
server knows which fields an apply gives up. The planner uses the preview to show a change. The applier uses it to
decide whether an apply or a create without a response has been carried out.
"""

from __future__ import annotations

from nodeyard.kube.json import Json, Object, json_equal
from nodeyard.plan.list_keys import is_set, keys_of, name_of


def merge_fields(obj: Object, fields: Object) -> Object:
    """Return the object with these fields; the identical object if it has them all."""
    result = obj
    for name, value in fields.items():
        if value is None:
            continue
        current = obj.get(name)
        merged = _merge_value(name, current, value)
        if merged is current:
            continue
        if result is obj:
            result = dict(obj)
        result[name] = merged
    return result


def has_fields(obj: Object, fields: Object) -> bool:
    """Return True if an apply of these fields would change nothing."""
    return merge_fields(obj, fields) is obj


def _merge_value(name: str, current: Json, value: Json) -> Json:
    if type(value) is str:
        return current if current == value else value
    if isinstance(current, dict) and isinstance(value, dict):
        return merge_fields(current, value)
    if isinstance(current, list) and isinstance(value, list):
        return _merge_list(name, current, value)
    if json_equal(current, value) or (current is None and value in ({}, [])):
        return current
    return value


def _merge_list(name: str, current: list[Json], items: list[Json]) -> list[Json]:
    if is_set(name, current, items):
        missing = [item for item in items if item not in current]
        return [*current, *missing] if missing else current
    keys = keys_of(name, current, items)
    if not keys:
        return current if json_equal(current, items) else items
    wanted = {name_of(item, keys): item for item in items}
    merged = [merge_fields(item, wanted.pop(name_of(item, keys), {})) for item in current] + list(wanted.values())
    is_unchanged = len(merged) == len(current) and all(map(lambda one, other: one is other, merged, current))
    return current if is_unchanged else merged
