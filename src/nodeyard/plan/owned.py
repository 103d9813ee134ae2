"""What a field manager has of an object, and what is left of the object when the manager stops saying it.

A server-side apply removes what its manager owned and does not say any more, unless another manager owns it too. With
that, what an apply would change can be told beforehand, and an apply that would change nothing is not sent:

    after = outcome(live, body, manager)
    is_needed = after is not live
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from nodeyard.kube.json import Json, Object
from nodeyard.plan.applied import applied

_GONE: Final[Any] = object()
_UNSAID: Final[Any] = object()


def fields_of(obj: Object, manager: str) -> Object:
    """The fields that a manager has applied, in the server's form (FieldsV1); empty where it never did."""
    return next((entry["fieldsV1"] for entry in _entries(obj) if _is_applied_by(entry, manager)), {})


def owns(obj: Object, manager: str, *path: str) -> bool:
    """Whether the manager has applied this field, by the names that lead to it."""
    return _has(fields_of(obj, manager), path)


def owners(obj: Object, *path: str) -> set[str]:
    """Every manager that has this field, however it was written."""
    return {entry.get("manager", "") for entry in _entries(obj) if _has(entry.get("fieldsV1") or {}, path)}


def outcome(obj: Object, body: Object, manager: str, keeping: Collection[tuple[str, ...]] = ()) -> Object:
    """The object as an apply by the manager leaves it; the very same where that changes nothing.

    `keeping` are fields that are not worth an apply merely because the manager does not say them any more.
    """
    return applied(relinquished(obj, body, manager, keeping), body)


def relinquished(obj: Object, body: Object, manager: str, keeping: Collection[tuple[str, ...]] = ()) -> Object:
    """The object without what the manager owns alone and does not say."""
    mine = fields_of(obj, manager)
    if not mine or _says_all(body, mine):
        return obj
    others = [entry.get("fieldsV1") or {} for entry in _entries(obj) if not _is_applied_by(entry, manager)]
    others += [_as_fields(path) for path in keeping]
    left = _left(obj, mine, body, others)
    return {} if left is _GONE else left


def handed_over(obj: Object, body: Object, manager: str, mover: str) -> list[Object] | None:
    """The managedFields by which what the mover wrote and the body says is as if the manager had applied it.

    Who copies an object from another server owns all of it there: what the manager stops to say would stay for ever.
    None where there is nothing to hand over, or where fields may be called otherwise: in another version."""
    entries, version = _entries(obj), body.get("apiVersion")
    theirs = next((each for each in entries if _is_updated_by(each, mover)), None)
    found = next((each for each in entries if _is_applied_by(each, manager)), None)
    if theirs is None or any(each and each.get("apiVersion") != version for each in (theirs, found)):
        return None
    said, left = _split(theirs.get("fieldsV1") or {}, body)
    if not said:
        return None
    mine = found or {**theirs, "manager": manager, "operation": "Apply", "fieldsV1": {}}
    others = [each for each in entries if each is not theirs and each is not found]
    rest = [{**theirs, "fieldsV1": left}] if left else []
    return [{**mine, "fieldsV1": _joined(mine["fieldsV1"], said)}, *rest, *others]


def _entries(obj: Object) -> Sequence[Object]:
    return obj.get("metadata", {}).get("managedFields") or ()


def _is_applied_by(entry: Object, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")


def _is_updated_by(entry: Object, manager: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == "Update" and not entry.get("subresource")


def _split(fields: Object, body: Json, *, is_item: bool = False) -> tuple[Object, Object]:
    """The fields that the body says, and the others. An item of a list goes with what is said of it, a map does not:
    an apply owns what it says in a map, and a map of which nothing is left belongs to nobody."""
    said: Object = {}
    left: Object = {}
    for key, below in fields.items():
        if key == ".":
            (said if is_item else left)[key] = below
            continue
        value = _named_by(key, body)
        if value is _UNSAID:
            left[key] = below
            continue
        inner, outer = _split(below, value, is_item=not key.startswith("f:")) if below else ({}, {})
        if inner or not below:
            said[key] = inner
        if outer:
            left[key] = outer
    return said, {} if said and left.keys() == {"."} else left


def _named_by(key: str, body: Json) -> Any:
    """What the body says of a field or an item, by its key in FieldsV1."""
    if key.startswith("f:"):
        return body.get(key[2:], _UNSAID) if isinstance(body, dict) else _UNSAID
    return _item_of(body, key) if isinstance(body, list) else _UNSAID


def _joined(fields: Object, more: Object) -> Object:
    return {**fields, **{key: _joined(fields.get(key) or {}, below) for key, below in more.items()}}


def _has(fields: Object, path: Sequence[str]) -> bool:
    for name in path:
        below = fields.get(f"f:{name}")
        if below is None:
            return False
        fields = below
    return True


def _as_fields(path: Sequence[str]) -> Object:
    fields: Object = {}
    for name in reversed(path):
        fields = {f"f:{name}": fields}
    return fields


def _says_all(body: Json, mine: Object) -> bool:
    """Whether everything that is owned is said, so that nothing can be given up; the common case, and soon told."""
    for key, below in mine.items():
        if key == ".":
            continue
        said = _named_by(key, body)
        if said is _UNSAID or (below and not _says_all(said, below)):
            return False
    return True


def _left(value: Json, mine: Object, body: Json, others: list[Object]) -> Any:
    """What remains of a value of which the manager owns `mine` and says `body`."""
    if not any(key != "." for key in mine):
        return value if body is not _UNSAID or others else _GONE
    if isinstance(value, dict):
        return _left_of_members(value, mine, body, others)
    return _left_of_items(value, mine, body, others) if isinstance(value, list) else value


def _left_of_members(value: Object, mine: Object, body: Json, others: list[Object]) -> Any:
    result = value
    for key, below in mine.items():
        name = key.removeprefix("f:")
        if not key.startswith("f:") or name not in value:
            continue
        said = body.get(name, _UNSAID) if isinstance(body, dict) else _UNSAID
        left = _left(value[name], below, said, [each[key] for each in others if key in each])
        if left is value[name]:
            continue
        result = dict(value) if result is value else result
        if left is _GONE:
            del result[name]
        else:
            result[name] = left
    return _GONE if not result and value and body is _UNSAID else result


def _left_of_items(value: list[Json], mine: Object, body: Json, others: list[Object]) -> Any:
    said = body if isinstance(body, list) else []
    gone: list[Json] = []
    for key in mine:
        item = _item_of(value, key)
        if item is not _UNSAID and _item_of(said, key) is _UNSAID and not any(key in each for each in others):
            gone.append(item)
    if not gone:
        return value
    result = [item for item in value if not any(item is each for each in gone)]
    return _GONE if not result and body is _UNSAID else result


def _item_of(items: list[Json], key: str) -> Any:
    """The item that a key of FieldsV1 names: `k:{"type":"Ready"}` or `v:"x"`."""
    if key.startswith("v:"):
        value = msgspec.json.decode(key[2:])
        return next((item for item in items if item == value), _UNSAID)
    if not key.startswith("k:"):
        return _UNSAID
    wanted: Object = msgspec.json.decode(key[2:])
    found = (item for item in items if isinstance(item, dict) and _is_named(item, wanted))
    return next(found, _UNSAID)


def _is_named(item: Object, wanted: Object) -> bool:
    return all(item.get(name) == value for name, value in wanted.items())
