"""Evaluation of comprehensions, which the macros over lists and maps expand to.

A fold is not run step by step: the shapes that macros make are recognized and run as the loops they stand for, such as
a quantifier that stops at the first decisive item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeAlias

from nodeyard.apiserver.cel.errors import CostExceeded, EvaluationError, no_such_overload
from nodeyard.apiserver.cel.macros import MAP_INSERT
from nodeyard.apiserver.cel.syntax import Call, Fold, ListNode, Literal, Node, walk
from nodeyard.apiserver.cel.values import (
    MISSING,
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    find,
    is_map,
    type_name,
)

Frame: TypeAlias = list[Any]
Evaluator: TypeAlias = Callable[[Frame], Any]


class Builder(Protocol):
    """Builds the parts of a fold."""

    def new_slot(self) -> int: ...

    def build(self, node: Node) -> Evaluator: ...

    def build_within(self, node: Node, names: dict[str, int]) -> Evaluator: ...


def build_fold(fold: Fold, builder: Builder) -> Evaluator:
    items = builder.build(fold.items)
    initial = builder.build(fold.initial)
    accumulator = builder.new_slot()
    if _is_binding(fold):
        result = builder.build_within(fold.result, {fold.accumulator: accumulator})
        return _binding(initial, accumulator, result)
    first, second = builder.new_slot(), builder.new_slot() if fold.second_variable else 0
    names = {fold.accumulator: accumulator, fold.variable: first}
    if fold.second_variable:
        names[fold.second_variable] = second
    loop = _Loop(first, second, sum(1 for _ in walk(fold.step)))
    condition, then = _split(fold.step)
    predicate = None if condition is None else builder.build_within(condition, names)
    match then:
        case Call(function="_&&_"):
            return _quantifier(items, loop, builder.build_within(then.arguments[1], names), decisive=False)
        case Call(function="_||_"):
            return _quantifier(items, loop, builder.build_within(then.arguments[1], names), decisive=True)
        case Call(function="_+_", arguments=(_, ListNode(elements=(element,)))):
            return _collector(items, loop, predicate, builder.build_within(element, names))
        case Call(function="_+_") if predicate is not None:
            return _exactly_one(items, loop, predicate)
        case Call() if then.function == MAP_INSERT:
            parts = [builder.build_within(argument, names) for argument in then.arguments[1:]]
            return _inserter(items, loop, predicate, parts)
        case _:
            raise TypeError(f"no macro makes {fold!r}")


def _is_binding(fold: Fold) -> bool:
    """True if a fold over nothing only binds its initial value to a name."""
    return isinstance(fold.condition, Literal) and fold.condition.value is False


def _split(step: Node) -> tuple[Node | None, Node]:
    """Split a conditional step into its condition and its step."""
    if isinstance(step, Call) and step.function == "_?_:_":
        return step.arguments[0], step.arguments[1]
    return None, step


class _Loop:
    """The slots of a loop's variables, and the cost of each iteration."""

    def __init__(self, first: int, second: int, weight: int) -> None:
        self._first = first
        self._second = second
        self._weight = weight

    def over(self, container: Any, frame: Frame) -> Iterator[None]:
        """Iterate over the container, and set the variables of each item."""
        first, second, weight = self._first, self._second, self._weight
        budget = frame[0]
        if not second:
            for item in _items(container):
                budget.left -= weight
                if budget.left < 0:
                    raise CostExceeded
                frame[first] = item
                yield
            return
        for key, item in _pairs(container):
            budget.left -= weight
            if budget.left < 0:
                raise CostExceeded
            frame[first] = key
            frame[second] = item
            yield


def _items(container: Any) -> Iterable[Any]:
    if isinstance(container, list) or is_map(container):
        items: Iterable[Any] = container
        return items
    raise EvaluationError(f"got '{_native_name(container)}', expected iterable type")


def _pairs(container: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(container, list):
        return enumerate(container)
    if is_map(container):
        return ((key, find(container, key)) for key in container)
    raise EvaluationError(f"unsupported comprehension range type: {_native_name(container)}")


# Go types of values that cannot be iterated over, for errors.
_NATIVE_NAMES: dict[type, str] = {
    str: "types.String",
    int: "types.Int",
    UInt: "types.Uint",
    float: "types.Double",
    bool: "types.Bool",
    bytes: "types.Bytes",
    type(None): "types.Null",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    TypeValue: "*types.Type",
    Optional: "*types.Optional",
}


def _native_name(value: Any) -> str:
    return _NATIVE_NAMES.get(value.__class__) or f"types.{type_name(value)}"


def _binding(initial: Evaluator, slot: int, result: Evaluator) -> Evaluator:
    def evaluate(frame: Frame) -> Any:
        frame[slot] = initial(frame)
        return result(frame)

    return evaluate


def _quantifier(items: Evaluator, loop: _Loop, predicate: Evaluator, *, decisive: bool) -> Evaluator:
    """Build `all` (decided by false) or `exists` (by true): an error counts only if no item decides."""

    def evaluate(frame: Frame) -> bool:
        failure: EvaluationError | None = None
        for _ in loop.over(items(frame), frame):
            try:
                answer = predicate(frame)
                if answer is decisive:
                    return bool(answer)
                if answer.__class__ is not bool:
                    raise no_such_overload()
            except EvaluationError as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return not decisive

    return evaluate


def _exactly_one(items: Evaluator, loop: _Loop, predicate: Evaluator | None) -> Evaluator:
    holds = _checked(predicate)

    def evaluate(frame: Frame) -> bool:
        return sum(1 for _ in loop.over(items(frame), frame) if holds(frame)) == 1

    return evaluate


def _collector(items: Evaluator, loop: _Loop, predicate: Evaluator | None, element: Evaluator) -> Evaluator:
    if predicate is None:
        return lambda frame: [element(frame) for _ in loop.over(items(frame), frame)]
    holds = _checked(predicate)
    return lambda frame: [element(frame) for _ in loop.over(items(frame), frame) if holds(frame)]


def _inserter(items: Evaluator, loop: _Loop, predicate: Evaluator | None, parts: list[Evaluator]) -> Evaluator:
    """Build a collection into a map, from keys and values or from maps."""
    holds = _checked(predicate)

    def evaluate(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for _ in loop.over(items(frame), frame):
            if not holds(frame):
                continue
            values = [part(frame) for part in parts]
            for key, value in [tuple(values)] if len(values) == 2 else list(_pairs(values[0])):
                if find(result, key) is not MISSING:
                    raise EvaluationError(f"insert failed: key {key} already exists")
                result[key] = value
        return result

    return evaluate


def _checked(predicate: Evaluator | None) -> Evaluator:
    if predicate is None:
        return lambda frame: True

    def holds(frame: Frame) -> bool:
        answer = predicate(frame)
        if answer.__class__ is not bool:
            raise no_such_overload()
        return bool(answer)

    return holds
