"""The cost of expressions: budgets, and the cost of calls.

The API server cancels an expression at a cost of 1,000,000, and all rules of an object at ten times that. Here a loop
is charged for every node of its body, evaluated or not, so the same work costs more and the limits are four times as
high. A call is charged before it runs, by the size of its arguments. See
https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/cel/library/cost.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from nodeyard.apiserver.cel.errors import CostExceeded
from nodeyard.apiserver.cel.macros import SORT_BY_KEYS
from nodeyard.apiserver.cel.types import Kind, Type
from nodeyard.apiserver.cel.values import ObjectValue, SetList

PER_EXPRESSION: Final = 4_000_000
PER_OBJECT: Final = 10 * PER_EXPRESSION
PER_MATCH: Final = PER_OBJECT // 4
"""The budget of the matchConditions of one webhook or policy."""
TRIAL: Final = 50_000
"""The budget of the expressions of one request on the event loop: about 20 ms."""
_PER_CHARACTER: Final = 5
"""The cost of compiling one character."""
_PER_SOURCE: Final = 200
"""The cost of compiling the shortest expression."""
_CHARACTERS_BITS: Final = 4
"""One unit pays for 16 characters."""

Cost: TypeAlias = Callable[[Sequence[Any]], int]
"""The cost of a call with these arguments."""


class CostlyError(Exception):
    """The expressions need more than the trial budget; they must be evaluated off the event loop."""


class Budget:
    """The remaining budget of the expressions for one object. Once it is closed, nothing more is evaluated."""

    __slots__ = ("_is_running", "_limit", "is_closed", "is_trial", "left", "remaining")

    def __init__(self, remaining: int = PER_OBJECT, *, is_trial: bool = False) -> None:
        self.remaining = remaining
        self.left = 0
        """The remaining budget of the running expression."""
        self.is_closed = False
        self.is_trial = is_trial
        """True if exceeding it raises CostlyError instead of failing the expression."""
        self._limit = 0
        self._is_running = False

    @classmethod
    def trial(cls) -> Budget:
        return cls(TRIAL, is_trial=True)

    @property
    def is_spent(self) -> bool:
        return self.remaining <= 0 and not self.is_trial

    def begin(self) -> bool:
        """Begin an expression; return False for a nested one, which shares the limit of the outer one."""
        if self._is_running:
            return False
        self._limit = self.left = min(PER_EXPRESSION, self.remaining)
        self._is_running = True
        return True

    def end(self) -> None:
        self.remaining -= self._limit - self.left
        self._is_running = False

    def spend(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise CostExceeded

    def spend_on_trial(self, cost: int) -> None:
        """Charge work beside the expressions, which only a trial budget pays for."""
        if self.is_trial:
            self.remaining -= cost
            if self.remaining < 0:
                raise CostlyError

    def spend_on_compiling(self, sources: Iterable[str]) -> None:
        self.spend_on_trial(sum(compilation_cost(source) for source in sources if source))


def compilation_cost(source: str) -> int:
    return _PER_SOURCE + _PER_CHARACTER * len(source)


def call_cost(name: str, parameters: Sequence[Type]) -> Cost | None:
    """Return the cost of a function with these parameter types, or None if it is constant."""
    if name == "lists.range":
        return _range
    if name in _CONSTANT or all(map(_is_small, parameters)):
        return None
    found: Cost = _COSTS.get(name, _length)
    return found


_CONSTANT: Final = frozenset(
    ("size", "type", "dyn", "_[_]", "_[?_]", "_?._", "value", "hasValue", "optional.of", "optional.ofNonZeroValue")
)


def _is_small(t: Type) -> bool:
    return t.kind in (Kind.SCALAR, Kind.NULL, Kind.TYPE) and t.name not in ("string", "bytes")


def _length(values: Sequence[Any]) -> int:
    return sum(map(_size, values))


def _size(value: Any) -> int:
    """The cost of one iteration over a value."""
    if value.__class__ is str or value.__class__ is bytes:
        return len(value) >> _CHARACTERS_BITS
    return len(value) if isinstance(value, list | dict) else 0


def _deep_size(value: Any) -> int:
    """The cost of a walk over a value and all nested values."""
    total, pending = 0, [value]
    while pending:
        value = pending.pop()
        if value.__class__ is str:
            total += len(value) >> _CHARACTERS_BITS
        elif value.__class__ is ObjectValue:
            pending.append(value.raw)
        elif isinstance(value, dict):
            total += len(value)
            pending.extend(value.values())
        elif value.__class__ is SetList:
            total += len(value) * len(value)
        elif isinstance(value, list):
            total += len(value)
            pending.extend(value)
    return total


def _deep(values: Sequence[Any]) -> int:
    return sum(map(_deep_size, values))


def _equality(values: Sequence[Any]) -> int:
    left, right = values
    if left is right or not isinstance(left, list | dict | ObjectValue):
        return _size(left)
    if isinstance(left, list) and isinstance(right, list) and len(left) != len(right):
        return 1
    return _deep_size(left)


def _membership(values: Sequence[Any]) -> int:
    value, container = values
    return _size(container) * (1 + _deep_size(value)) if isinstance(container, list) else 1


def _addition(values: Sequence[Any]) -> int:
    left, right = values
    return len(left) * len(right) if left.__class__ is SetList and isinstance(right, list) else _length(values)


def _product(values: Sequence[Any]) -> int:
    left, right = values
    return (1 + _deep_size(left)) * (1 + _deep_size(right))


def _distinct(values: Sequence[Any]) -> int:
    return _size(values[0]) * _deep_size(values[0]) // 2


def _sort(values: Sequence[Any]) -> int:
    count = _size(values[0])
    return count * count.bit_length()


def _replace(values: Sequence[Any]) -> int:
    text, old, new, *_ = values
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str)):
        return 0
    return (len(text) + text.count(old) * len(new)) >> _CHARACTERS_BITS


def _join(values: Sequence[Any]) -> int:
    separator = len(values[1]) if len(values) > 1 and values[1].__class__ is str else 0
    return _deep_size(values[0]) + (_size(values[0]) * separator >> _CHARACTERS_BITS)


def _pattern(values: Sequence[Any]) -> int:
    text, pattern, *_ = values
    return _size(text) * (1 + _size(pattern))


def _range(values: Sequence[Any]) -> int:
    count = values[0]
    return int(count) if isinstance(count, int) else 0


_COSTS: Final[dict[str, Cost]] = {
    "_==_": _equality,
    "_!=_": _equality,
    "@in": _membership,
    "_+_": _addition,
    "sets.contains": _product,
    "sets.equivalent": lambda values: 2 * _product(values),
    "sets.intersects": _product,
    "distinct": _distinct,
    "sort": _sort,
    SORT_BY_KEYS: _sort,
    "flatten": _deep,
    "format": _deep,
    "replace": _replace,
    "join": _join,
    "matches": _pattern,
    "find": _pattern,
    "findAll": _pattern,
}
