"""Field ownership (`metadata.managedFields`), and the exact result of a server-side apply.

An apply removes fields that its manager owned and no longer applies, unless another manager owns them too. The preview
shows what an apply would change, and an apply that would change nothing is not sent:

    after = preview_apply(live, body, manager)
    is_needed = after is not live
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from nodeyard.kube.json import Json, Object, json_equal
from nodeyard.plan.apply_preview import merge_fields

_GONE: Final[Any] = object()
_ABSENT: Final[Any] = object()


def fields_of(obj: Object, manager: str) -> Object:
    """Return the fields that a manager has applied, as FieldsV1; empty if it has applied none."""
    return next((entry["fieldsV1"] for entry in _entries(obj) if _is_applied_by(entry, manager)), {})


def owns(obj: Object, manager: str, *path: str) -> bool:
    """Return True if the manager has applied the field at this path."""
    return _has(fields_of(obj, manager), path)


def owners(obj: Object, *path: str) -> set[str]:
    """Return all managers that own the field at this path, by apply or update."""
    return {entry.get("manager", "") for entry in _entries(obj) if _has(entry.get("fieldsV1") or {}, path)}


def preview_apply(obj: Object, body: Object, manager: str, keeping: Collection[tuple[str, ...]] = ()) -> Object:
    """Return the object after an apply by the manager; the identical object if the apply changes nothing.

    `keeping` lists fields whose removal alone does not justify an apply.
    """
    return merge_fields(drop_unapplied(obj, body, manager, keeping), body)


def drop_unapplied(obj: Object, body: Object, manager: str, keeping: Collection[tuple[str, ...]] = ()) -> Object:
    """Return the object without the fields that the manager alone owns and the body lacks."""
    mine = fields_of(obj, manager)
    if not mine or _covers(body, mine):
        return obj
    others = [entry.get("fieldsV1") or {} for entry in _entries(obj) if not _is_applied_by(entry, manager)]
    others += [_to_fields_v1(path) for path in keeping]
    left = _drop_fields(obj, mine, body, others)
    return {} if left is _GONE else left


def transfer_fields(obj: Object, body: Object, manager: str, mover: str) -> list[Object] | None:
    """Return managedFields in which the mover's fields that the body contains belong to the manager.

    A tool that copies an object to another server owns all its fields there, so fields that the manager stops applying
    would stay forever. Return None if there is nothing to transfer, or if an entry is in another API version, where
    fields may have other names.
    """
    entries, version = _entries(obj), body.get("apiVersion")
    theirs = next((each for each in entries if _is_updated_by(each, mover)), None)
    found = next((each for each in entries if _is_applied_by(each, manager)), None)
    if theirs is None or any(each and each.get("apiVersion") != version for each in (theirs, found)):
        return None
    applied, left = _split(theirs.get("fieldsV1") or {}, body)
    if not applied:
        return None
    mine = found or {**theirs, "manager": manager, "operation": "Apply", "fieldsV1": {}}
    others = [each for each in entries if each is not theirs and each is not found]
    rest = [{**theirs, "fieldsV1": left}] if left else []
    return [{**mine, "fieldsV1": _merge_fields_v1(mine["fieldsV1"], applied)}, *rest, *others]


def _entries(obj: Object) -> Sequence[Object]:
    return obj.get("metadata", {}).get("managedFields") or ()


def _is_applied_by(entry: Object, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")


def _is_updated_by(entry: Object, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Update" and not entry.get("subresource")


def _split(fields: Object, body: Json, *, is_item: bool = False) -> tuple[Object, Object]:
    """Split FieldsV1 into fields that the body contains and the rest.

    A list item goes with its fields, a map does not: an apply owns only the keys it sets in a map, and an empty map has
    no owner.
    """
    applied: Object = {}
    left: Object = {}
    for key, below in fields.items():
        if key == ".":
            (applied if is_item else left)[key] = below
            continue
        value = _value_at(key, body)
        if value is _ABSENT:
            left[key] = below
            continue
        inner, outer = _split(below, value, is_item=not key.startswith("f:")) if below else ({}, {})
        if inner or not below:
            applied[key] = inner
        if outer:
            left[key] = outer
    return applied, {} if applied and left.keys() == {"."} else left


def _value_at(key: str, body: Json) -> Any:
    """Return the body's value for a field or list item, by its FieldsV1 key."""
    if key.startswith("f:"):
        return body.get(key[2:], _ABSENT) if isinstance(body, dict) else _ABSENT
    return _find_item(body, key) if isinstance(body, list) else _ABSENT


def _merge_fields_v1(fields: Object, more: Object) -> Object:
    return {**fields, **{key: _merge_fields_v1(fields.get(key) or {}, below) for key, below in more.items()}}


def _has(fields: Object, path: Sequence[str]) -> bool:
    for name in path:
        below = fields.get(f"f:{name}")
        if below is None:
            return False
        fields = below
    return True


def _to_fields_v1(path: Sequence[str]) -> Object:
    fields: Object = {}
    for name in reversed(path):
        fields = {f"f:{name}": fields}
    return fields


def _covers(body: Json, mine: Object) -> bool:
    """Return True if the body contains every owned field, so that the apply removes nothing: the fast path."""
    for key, below in mine.items():
        if key == ".":
            continue
        value = _value_at(key, body)
        if value is _ABSENT or (below and not _covers(value, below)):
            return False
    return True


def _drop_fields(value: Json, mine: Object, body: Json, others: list[Object]) -> Any:
    """Return what remains of a value if its manager owns `mine` and applies `body`."""
    if not any(key != "." for key in mine):
        return value if body is not _ABSENT or others else _GONE
    if isinstance(value, dict):
        return _drop_members(value, mine, body, others)
    return _drop_items(value, mine, body, others) if isinstance(value, list) else value


def _drop_members(value: Object, mine: Object, body: Json, others: list[Object]) -> Any:
    result = value
    for key, below in mine.items():
        name = key.removeprefix("f:")
        if not key.startswith("f:") or name not in value:
            continue
        wanted = body.get(name, _ABSENT) if isinstance(body, dict) else _ABSENT
        left = _drop_fields(value[name], below, wanted, [each[key] for each in others if key in each])
        if left is value[name]:
            continue
        result = dict(value) if result is value else result
        if left is _GONE:
            del result[name]
        else:
            result[name] = left
    return _GONE if not result and value and body is _ABSENT else result


def _drop_items(value: list[Json], mine: Object, body: Json, others: list[Object]) -> Any:
    wanted = body if isinstance(body, list) else []
    gone: list[Json] = []
    for key in mine:
        item = _find_item(value, key)
        if item is not _ABSENT and _find_item(wanted, key) is _ABSENT and not any(key in each for each in others):
            gone.append(item)
    if not gone:
        return value
    result = [item for item in value if not any(item is each for each in gone)]
    return _GONE if not result and body is _ABSENT else result


def _find_item(items: list[Json], key: str) -> Any:
    """Return the list item for a FieldsV1 key: `k:{"type":"Ready"}` or `v:"x"`."""
    if key.startswith("v:"):
        value = msgspec.json.decode(key[2:])
        return next((item for item in items if json_equal(item, value)), _ABSENT)
    if not key.startswith("k:"):
        return _ABSENT
    wanted: Object = msgspec.json.decode(key[2:])
    found = (item for item in items if isinstance(item, dict) and _has_keys(item, wanted))
    return next(found, _ABSENT)


def _has_keys(item: Object, wanted: Object) -> bool:
    return all(json_equal(item.get(name), value) for name, value in wanted.items())
