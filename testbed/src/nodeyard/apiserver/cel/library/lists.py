"""Functions on lists: those of Kubernetes (`isSorted`, `sum`, `min`, ...), the lists and the sets extension."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from nodeyard.apiserver.cel.comparison import compare, contains, equal
from nodeyard.apiserver.cel.declarations import Overload, function, member, operators
from nodeyard.apiserver.cel.errors import CostExceeded, EvaluationError, no_such_overload
from nodeyard.apiserver.cel.library.arithmetic import add
from nodeyard.apiserver.cel.macros import SORT_BY_KEYS
from nodeyard.apiserver.cel.values import Duration, UInt, type_name

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROS: dict[str, Any] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}
_LONGEST_RANGE = 1_000_000


def is_sorted(items: list[Any]) -> bool:
    return all(compare(left, right) <= 0 for left, right in pairwise(items))


def _sum_from(zero: Any) -> Callable[[list[Any]], Any]:
    def total(items: list[Any]) -> Any:
        result = zero
        for item in items:
            result = add(result, item)
        return result

    return total


def minimum(items: list[Any]) -> Any:
    return _extreme(items, "min", 1)


def maximum(items: list[Any]) -> Any:
    return _extreme(items, "max", -1)


def _extreme(items: list[Any], name: str, replaced_when: int) -> Any:
    if not items:
        raise EvaluationError(f"{name} called on empty list")
    best = items[0]
    for item in items[1:]:
        if compare(best, item) == replaced_when:
            best = item
    return best


def index_of(items: list[Any], wanted: Any) -> int:
    return next((position for position, item in enumerate(items) if equal(item, wanted)), -1)


def last_index_of(items: list[Any], wanted: Any) -> int:
    return next((position for position in reversed(range(len(items))) if equal(items[position], wanted)), -1)


def slice_list(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def flatten(items: Any, depth: Any = 1) -> list[Any]:
    if not isinstance(items, list) or depth.__class__ is not int:
        raise no_such_overload(f"{type_name(items)}.flatten()")
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    result: list[Any] = []
    for item in items:
        if isinstance(item, list) and depth > 0:
            result.extend(flatten(item, depth - 1))
        else:
            result.append(item)
    return result


def number_range(count: int) -> list[int]:
    if count > _LONGEST_RANGE:
        raise CostExceeded
    return list(range(count))


def distinct(items: list[Any]) -> list[Any]:
    result: list[Any] = []
    for item in items:
        if not contains(result, item):
            result.append(item)
    return result


def sort(items: list[Any]) -> list[Any]:
    return sort_by_keys(items, items)


def sort_by_keys(items: list[Any], keys: list[Any]) -> list[Any]:
    if any(key.__class__ is not keys[0].__class__ for key in keys):
        raise EvaluationError("list elements must have the same type")
    by_key = cmp_to_key(compare)
    return [items[position] for position in sorted(range(len(items)), key=lambda position: by_key(keys[position]))]


def includes(items: list[Any], wanted: list[Any]) -> bool:
    return all(contains(items, item) for item in wanted)


def _overloads() -> Iterator[Overload]:
    for name in _COMPARABLE:
        yield member("isSorted", f"list({name}) -> bool", is_sorted)
        yield member("min", f"list({name}) -> {name}", minimum)
        yield member("max", f"list({name}) -> {name}", maximum)
        yield member("sort", f"list({name}) -> list({name})", sort)
        yield member(SORT_BY_KEYS, f"list(T), list({name}) -> list(T)", sort_by_keys)
    for name, zero in _ZEROS.items():
        yield member("sum", f"list({name}) -> {name}", _sum_from(zero))
    yield member("indexOf", "list(A), A -> int", index_of)
    yield member("lastIndexOf", "list(A), A -> int", last_index_of)
    yield member("slice", "list(T), int, int -> list(T)", slice_list)
    yield from operators("flatten", "list(list(T)) -> list(T)\nlist(dyn), int -> list(dyn)", flatten, is_member=True)
    yield function("lists.range", "int -> list(int)", number_range)
    yield member("reverse", "list(T) -> list(T)", lambda items: items[::-1])
    yield member("distinct", "list(T) -> list(T)", distinct)
    yield function("sets.contains", "list(T), list(T) -> bool", includes)
    yield function("sets.equivalent", "list(T), list(T) -> bool", lambda a, b: includes(a, b) and includes(b, a))
    yield function("sets.intersects", "list(T), list(T) -> bool", lambda a, b: any(contains(b, i) for i in a))


OVERLOADS: list[Overload] = list(_overloads())
