"""The optional extension: `optional.of(1)`, `self.?name.orValue('none')`."""

from __future__ import annotations

from typing import Any

from nodeyard.apiserver.cel.declarations import Overload, function, member
from nodeyard.apiserver.cel.errors import EvaluationError, no_such_overload
from nodeyard.apiserver.cel.values import NONE, Duration, ObjectValue, Optional, Timestamp


def _is_zero(value: Any) -> bool:
    if value is None or isinstance(value, list | dict | str | bytes | ObjectValue):
        return not value
    if value.__class__ is Duration:
        return bool(value.nanoseconds == 0)
    if value.__class__ is Optional:
        return not value.has_value
    return not isinstance(value, Timestamp) and value in (0, False)


def of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def value_of(optional: Optional) -> Any:
    if not optional.has_value:
        raise EvaluationError("optional.none() dereference")
    return optional.value


def unwrap(items: list[Any]) -> list[Any]:
    for item in items:
        if item.__class__ is not Optional:
            raise EvaluationError(f"value {item} is not optional")
    return [item.value for item in items if item.has_value]


def _chained(*_: Any) -> Any:
    """The implementation of `or` and `orValue`, which the program evaluates itself: lazily."""
    raise no_such_overload()


OVERLOADS: list[Overload] = [
    function("optional.of", "V -> optional(V)", Optional),
    function("optional.ofNonZeroValue", "V -> optional(V)", of_non_zero),
    function("optional.none", "-> optional(V)", lambda: NONE),
    function("optional.unwrap", "list(optional(V)) -> list(V)", unwrap),
    member("unwrapOpt", "list(optional(V)) -> list(V)", unwrap),
    member("value", "optional(V) -> V", value_of),
    member("hasValue", "optional(V) -> bool", lambda optional: optional.has_value),
    member("or", "optional(V), optional(V) -> optional(V)", _chained),
    member("orValue", "optional(V), V -> V", _chained),
    member("first", "list(V) -> optional(V)", lambda items: Optional(items[0]) if items else NONE),
    member("last", "list(V) -> optional(V)", lambda items: Optional(items[-1]) if items else NONE),
]
