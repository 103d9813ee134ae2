"""Equality and order of values.

Numbers compare across their types, other values only with their own type. Lists with list-type set or map are equal in
any order, objects are equal field by field as their schema converts the fields.
"""

from __future__ import annotations

import math
from typing import Any

from nodeyard.apiserver.cel.errors import EvaluationError, no_such_overload
from nodeyard.apiserver.cel.values import (
    INT_MAX,
    INT_MIN,
    MISSING,
    Duration,
    MapList,
    ObjectValue,
    Opaque,
    Optional,
    SetList,
    Timestamp,
    UInt,
    find,
    is_map,
)
from nodeyard.kube.json import json_equal

_NUMBERS = {int, float, UInt}
_ORDERED = {str, bytes, bool, Duration, Timestamp}


def equal(left: Any, right: Any) -> bool:
    kind = left.__class__
    if kind is str or kind is bool or left is None:
        return right.__class__ is kind and bool(left == right)
    if kind in _NUMBERS:
        return right.__class__ in _NUMBERS and _equal_numbers(left, right)
    if isinstance(left, list):
        return isinstance(right, list) and _equal_lists(left, right)
    if kind is ObjectValue:
        return _equal_objects(left, right)
    if kind is dict:
        return is_map(right) and _equal_maps(left, right)
    if kind is Optional:
        return right.__class__ is Optional and _equal_optionals(left, right)
    if isinstance(left, Opaque):
        return right is not None and left.equals(right)
    return right.__class__ is kind and bool(left == right)


def _equal_numbers(left: Any, right: Any) -> bool:
    if left.__class__ is float or right.__class__ is float:
        return float(left) == float(right)
    return bool(left == right)


def _equal_lists(left: list[Any], right: list[Any]) -> bool:
    if left is right:
        return True
    if len(left) != len(right):
        return False
    if left.__class__ is SetList:
        return all(contains(left, item) for item in right)
    if isinstance(left, MapList):
        by_key = {left.key_of(item): item for item in left}
        return all(equal(by_key.get(left.key_of(item), MISSING), item) for item in right)
    return all(map(equal, left, right))


def _equal_maps(left: dict[Any, Any], right: Any) -> bool:
    if left is right:
        return True
    if len(left) != len(right):
        return False
    for key, value in left.items():
        other = find(right, key)
        if other is MISSING or not equal(value, other):
            return False
    return True


def _equal_objects(left: ObjectValue, right: Any) -> bool:
    if not is_map(right) or len(left) != len(right):
        return False
    if right.__class__ is ObjectValue and left.raw is right.raw:
        return True
    for name in left:
        value, other = left.find(name), find(right, name)
        if (value is MISSING) != (other is MISSING):
            return False
        if value is not MISSING and not equal(value, other):
            return False
    return right.__class__ is not ObjectValue or _equal_undeclared(left, right)


def _equal_undeclared(left: ObjectValue, right: ObjectValue) -> bool:
    """Compare preserved unknown fields that both objects have."""
    names = left.shape.undeclared(left.raw)
    return all(json_equal(left.raw[name], right.raw[name]) for name in names if name in right.raw)


def _equal_optionals(left: Optional, right: Optional) -> bool:
    if not (left.has_value and right.has_value):
        return left.has_value == right.has_value
    return equal(left.value, right.value)


def contains(items: list[Any], wanted: Any) -> bool:
    if wanted.__class__ is str:
        return wanted in items
    return any(equal(item, wanted) for item in items)


def compare(left: Any, right: Any, operator: str = "") -> int:
    """Return -1, 0 or 1; raise an error, with the operator's name if given, if there is no order."""
    kind, other = left.__class__, right.__class__
    if kind in _NUMBERS and other in _NUMBERS:
        return _compare_numbers(left, right)
    if kind is not other or kind not in _ORDERED:
        raise no_such_overload("" if kind in _NUMBERS or kind in _ORDERED else operator)
    if kind is Timestamp:
        left, right = left.nanoseconds, right.nanoseconds
    return int(left > right) - int(left < right)


def _compare_numbers(left: Any, right: Any) -> int:
    if left.__class__ is float or right.__class__ is float:
        if math.isnan(left) or math.isnan(right):
            raise EvaluationError("NaN values cannot be ordered")
        # As doubles, as on the API server.
        left, right = float(left), float(right)
    return int(left > right) - int(left < right)


def checked_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise EvaluationError("integer overflow")
