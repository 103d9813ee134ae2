"""Access to fields, keys and indexes of values, plain and optional.

For a value without fields a plain access is an error, a test is false, and an optional access is none.
"""

from __future__ import annotations

from typing import Any

from nodeyard.apiserver.cel.errors import EvaluationError, no_such_key
from nodeyard.apiserver.cel.values import MISSING, NONE, Optional, UInt, find, is_map, type_name


def whole(value: Any) -> Any:
    """Return an integer; raise for 1.0, which JSON may contain and the API server does not take for 1."""
    if value.__class__ is float:
        raise EvaluationError("invalid data, expected int, got float64")
    return value


def select(value: Any, field: str) -> Any:
    found = _lookup(value, field)
    if found is MISSING:
        raise no_such_key(field)
    return found


def has_field(value: Any, field: str) -> bool:
    if value.__class__ is Optional:
        value = value.value
    return value is not MISSING and _lookup(value, field) is not MISSING


def optional_select(value: Any, field: str) -> Any:
    return select_from_optional(value if value.__class__ is Optional else Optional(value), field)


def select_from_optional(value: Any, field: str) -> Any:
    if value.__class__ is not Optional:
        return select(value, field)
    if not value.has_value:
        return NONE
    found = _lookup(value.value, field)
    return NONE if found is MISSING else Optional(found)


def index(value: Any, key: Any) -> Any:
    if value.__class__ is Optional:
        return optional_index(value, key)
    found = _lookup(value, key)
    if found is not MISSING:
        return found
    if isinstance(value, list):
        raise EvaluationError(f"index out of bounds: {_shown(key)}")
    raise no_such_key(_shown(key))


def optional_index(value: Any, key: Any) -> Optional:
    if value.__class__ is Optional:
        if not value.has_value:
            return NONE
        value = value.value
    found = _lookup(value, key)
    return NONE if found is MISSING else Optional(found)


def _lookup(value: Any, key: Any) -> Any:
    if is_map(value):
        return find(value, key)
    if not isinstance(value, list):
        return MISSING
    position = _position(key)
    return value[position] if 0 <= position < len(value) else MISSING


def _position(key: Any) -> int:
    if key.__class__ is int or key.__class__ is UInt:
        return int(key)
    if key.__class__ is not float:
        raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")
    if not key.is_integer():
        raise EvaluationError(f"unsupported index value {_shown(key)} in list")
    return int(key)


def _shown(key: Any) -> str:
    """Format a key for an error."""
    if key.__class__ is bool:
        return "true" if key else "false"
    if key.__class__ is float and key.is_integer():
        return str(int(key))
    return str(key)
