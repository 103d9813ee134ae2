"""The operators: arithmetic, order, equality, membership, size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from nodeyard.apiserver.cel.access import index, optional_index, optional_select
from nodeyard.apiserver.cel.comparison import checked_int, compare, contains, equal
from nodeyard.apiserver.cel.declarations import Overload, function, operators
from nodeyard.apiserver.cel.errors import EvaluationError, no_such_overload
from nodeyard.apiserver.cel.macros import MAP_INSERT
from nodeyard.apiserver.cel.timestamps import EARLIEST, LATEST
from nodeyard.apiserver.cel.values import (
    MISSING,
    UINT_MAX,
    Duration,
    MapList,
    SetList,
    Timestamp,
    UInt,
    find,
    is_map,
)

_NUMERIC = (int, UInt, float)


def add(left: Any, right: Any) -> Any:
    kind, other = left.__class__, right.__class__
    if isinstance(left, list) and isinstance(right, list):
        return _joined(left, right)
    if kind is other:
        if kind is int:
            return checked_int(left + right)
        if kind in (str, float, bytes):
            return left + right
        if kind is UInt:
            return _checked_uint(int(left) + int(right))
        if kind is Duration:
            return Duration(checked_int(left.nanoseconds + right.nanoseconds))
    if kind is Timestamp and other is Duration:
        return _moved(left, right.nanoseconds)
    if kind is Duration and other is Timestamp:
        return _moved(right, left.nanoseconds)
    raise _mismatch(left, "_+_", (int, UInt, float, bytes, list, SetList, MapList))


def _mismatch(left: Any, operator: str, kinds: tuple[type, ...]) -> EvaluationError:
    """Return the error of an operator. It names the operator if no overload takes the left operand's type."""
    is_operand = left.__class__ in kinds or left.__class__ in (str, Timestamp, Duration)
    return no_such_overload("" if is_operand else operator)


def _joined(left: list[Any], right: list[Any]) -> list[Any]:
    """Concatenate lists: a union if the left one is a set, a merge by key if it is a map."""
    if isinstance(left, SetList):
        union = SetList(left)
        union.extend(item for item in right if not contains(left, item))
        return union
    if isinstance(left, MapList):
        positions = {left.key_of(item): position for position, item in enumerate(left)}
        merged = MapList(left, left.keys)
        for item in right:
            position = positions.get(left.key_of(item))
            if position is None:
                merged.append(item)
            else:
                merged[position] = item
        return merged
    return [*left, *right]


def subtract(left: Any, right: Any) -> Any:
    kind, other = left.__class__, right.__class__
    if kind is other:
        if kind is int:
            return checked_int(left - right)
        if kind is float:
            return left - right
        if kind is UInt:
            return _checked_uint(int(left) - int(right))
        if kind is Duration or kind is Timestamp:
            return Duration(checked_int(left.nanoseconds - right.nanoseconds))
    if kind is Timestamp and other is Duration:
        return _moved(left, -right.nanoseconds)
    raise _mismatch(left, "_-_", _NUMERIC)


def multiply(left: Any, right: Any) -> Any:
    kind = _number_kind(left, right, "_*_")
    if kind is float:
        return left * right
    return checked_int(left * right) if kind is int else _checked_uint(int(left) * int(right))


def divide(left: Any, right: Any) -> Any:
    kind = _number_kind(left, right, "_/_")
    if kind is float:
        return _divided(left, right)
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    signed = quotient if (left < 0) == (right < 0) else -quotient
    return checked_int(signed) if kind is int else UInt(signed)


def _divided(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def modulo(left: Any, right: Any) -> Any:
    kind = _number_kind(left, right, "_%_", (int, UInt))
    if right == 0:
        raise EvaluationError("modulus by zero")
    remainder = abs(int(left)) % abs(int(right))
    return UInt(remainder) if kind is UInt else (-remainder if left < 0 else remainder)


def negate(value: Any) -> Any:
    if value.__class__ is int:
        return checked_int(-value)
    if value.__class__ is float:
        return -value
    if value.__class__ is Duration:
        return Duration(checked_int(-value.nanoseconds))
    raise _mismatch(value, "-_", (bool,))


def negate_bool(value: Any) -> bool:
    if value.__class__ is bool:
        return not value
    raise no_such_overload()


def size(value: Any) -> int:
    if isinstance(value, str | bytes | list) or is_map(value):
        return len(value)
    raise _mismatch(value, "size", ())


def is_in(value: Any, container: Any) -> bool:
    if isinstance(container, list):
        return contains(container, value)
    if is_map(container):
        return find(container, value) is not MISSING
    raise no_such_overload()


def _number_kind(left: Any, right: Any, operator: str, kinds: tuple[type, ...] = _NUMERIC) -> type:
    if left.__class__ in kinds and left.__class__ is right.__class__:
        return type(left)
    raise _mismatch(left, operator, kinds)


def _checked_uint(value: int) -> UInt:
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise EvaluationError("unsigned integer overflow")


def _moved(timestamp: Timestamp, nanoseconds: int) -> Timestamp:
    moved = timestamp.nanoseconds + nanoseconds
    if not EARLIEST <= moved <= LATEST:
        raise EvaluationError("timestamp overflow")
    return Timestamp(moved, timestamp.zone_minutes)


def _special(*_: Any) -> Any:
    """The implementation of forms that the program evaluates itself."""
    raise no_such_overload()


_ORDERED = """
    bool, bool -> bool
    int, int -> bool
    int, double -> bool
    int, uint -> bool
    uint, uint -> bool
    uint, double -> bool
    uint, int -> bool
    double, double -> bool
    double, int -> bool
    double, uint -> bool
    string, string -> bool
    bytes, bytes -> bool
    timestamp, timestamp -> bool
    duration, duration -> bool
"""


def _ordering(name: str, holds: Callable[[int], bool]) -> list[Overload]:
    return operators(name, _ORDERED, lambda left, right: holds(compare(left, right, name)))


_SIZED = "string -> int\nbytes -> int\nlist(A) -> int\nmap(A, B) -> int"
_NUMBERS = "double, double -> double\nint, int -> int\nuint, uint -> uint"

OVERLOADS: list[Overload] = [
    *operators("_?_:_", "bool, A, A -> A", _special),
    *operators("_&&_", "bool, bool -> bool", _special),
    *operators("_||_", "bool, bool -> bool", _special),
    *operators("!_", "bool -> bool", negate_bool),
    *operators("@not_strictly_false", "bool -> bool", _special),
    *operators("_==_", "A, A -> bool", equal),
    *operators("_!=_", "A, A -> bool", lambda left, right: not equal(left, right)),
    *operators(
        "_+_",
        """
        bytes, bytes -> bytes
        double, double -> double
        duration, duration -> duration
        duration, timestamp -> timestamp
        timestamp, duration -> timestamp
        int, int -> int
        list(A), list(A) -> list(A)
        string, string -> string
        uint, uint -> uint
        """,
        add,
    ),
    *operators(
        "_-_",
        """
        double, double -> double
        duration, duration -> duration
        int, int -> int
        timestamp, duration -> timestamp
        timestamp, timestamp -> duration
        uint, uint -> uint
        """,
        subtract,
    ),
    *operators("_*_", _NUMBERS, multiply),
    *operators("_/_", _NUMBERS, divide),
    *operators("_%_", "int, int -> int\nuint, uint -> uint", modulo),
    *operators("-_", "double -> double\nint -> int", negate),
    *_ordering("_<_", lambda order: order < 0),
    *_ordering("_<=_", lambda order: order <= 0),
    *_ordering("_>_", lambda order: order > 0),
    *_ordering("_>=_", lambda order: order >= 0),
    *operators(
        "_[_]",
        """
        list(A), int -> A
        map(A, B), A -> B
        optional(list(A)), int -> optional(A)
        optional(map(A, B)), A -> optional(B)
        """,
        index,
    ),
    *operators(
        "_[?_]",
        """
        list(A), int -> optional(A)
        optional(list(A)), int -> optional(A)
        map(A, B), A -> optional(B)
        optional(map(A, B)), A -> optional(B)
        """,
        optional_index,
    ),
    *operators("_?._", "dyn, string -> optional(A)", optional_select),
    function(MAP_INSERT, "map(K, V), K, V -> map(K, V)", _special),
    function(MAP_INSERT, "map(K, V), map(K, V) -> map(K, V)", _special),
    *operators("@in", "A, list(A) -> bool\nA, map(A, B) -> bool", is_in),
    *operators("size", _SIZED, size),
    *operators("size", _SIZED, size, is_member=True),
]
