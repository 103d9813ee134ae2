"""Assertions about a rehearsal: `evicted < 50 and seconds <= 2h`.

A small language of its own, so that an assertion from a stranger's scenario can do nothing but compare numbers:
numbers, durations (90s, 15m, 2h), the names of facts, + - * /, comparisons, and, or, not, parentheses.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(r"\s*(?:(\d+(?:\.\d+)?)(ms|s|m|h|d)?(?![\w.])|([a-z_][a-z0-9_]*)|(<=|>=|==|!=|[-+*/()<>]))")
_SECONDS: Final = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_LONGEST: Final = 300
_DEEPEST: Final = 20
_WORDS: Final = ("and", "or", "not")

Value = float | bool
Evaluate = Callable[[Mapping[str, float]], Value]


class AssertionSyntaxError(ValueError):
    """The text says what is wrong, and where."""


class Assertion(NamedTuple):
    text: str
    evaluate: Evaluate

    def holds(self, facts: Mapping[str, float]) -> bool:
        return bool(self.evaluate(facts))


def parse_assertion(text: str, facts: Iterable[str]) -> Assertion:
    """Parse an assertion over these facts."""
    if len(text) > _LONGEST:
        raise AssertionSyntaxError(f"an assertion has at most {_LONGEST} characters")
    if text.count("(") > _DEEPEST:
        raise AssertionSyntaxError(f"an assertion has at most {_DEEPEST} parentheses")
    return Assertion(text, _Parser(text, frozenset(facts)).parse())


class _Parser:
    def __init__(self, text: str, facts: frozenset[str]) -> None:
        self._text, self._facts = text, facts
        self._tokens = list(_tokens(text))
        self._next = 0

    def parse(self) -> Evaluate:
        found = self._either()
        if self._next < len(self._tokens):
            raise self._error(f'"{self._tokens[self._next]}" is not expected here')
        return found

    def _either(self) -> Evaluate:
        left = self._both()
        while self._take("or"):
            left = _or(left, self._both())
        return left

    def _both(self) -> Evaluate:
        left = self._negation()
        while self._take("and"):
            left = _and(left, self._negation())
        return left

    def _negation(self) -> Evaluate:
        if self._take("not"):
            inner = self._negation()
            return lambda facts: not inner(facts)
        return self._comparison()

    def _comparison(self) -> Evaluate:
        left = self._sum()
        for symbol, compare in _COMPARISONS.items():
            if self._take(symbol):
                return _binary(compare, left, self._sum())
        return left

    def _sum(self) -> Evaluate:
        left = self._product()
        while True:
            if self._take("+"):
                left = _binary(operator.add, left, self._product())
            elif self._take("-"):
                left = _binary(operator.sub, left, self._product())
            else:
                return left

    def _product(self) -> Evaluate:
        left = self._atom()
        while True:
            if self._take("*"):
                left = _binary(operator.mul, left, self._atom())
            elif self._take("/"):
                left = _binary(_divide, left, self._atom())
            else:
                return left

    def _atom(self) -> Evaluate:
        if self._take("-"):
            inner = self._atom()
            return lambda facts: -inner(facts)
        if self._take("("):
            inside = self._either()
            if not self._take(")"):
                raise self._error('")" is missing')
            return inside
        if self._next == len(self._tokens):
            raise self._error("ends too early")
        token = self._tokens[self._next]
        self._next += 1
        if isinstance(token, float):
            return lambda _facts: token
        if token in self._facts and token not in _WORDS:
            return lambda facts: facts[token]
        raise self._error(f'no fact "{token}"; there are: {", ".join(sorted(self._facts))}')

    def _take(self, token: str) -> bool:
        is_next = self._next < len(self._tokens) and self._tokens[self._next] == token
        self._next += is_next
        return is_next

    def _error(self, what: str) -> AssertionSyntaxError:
        return AssertionSyntaxError(f"{self._text}: {what}")


def _tokens(text: str) -> Iterable[float | str]:
    place = 0
    while text[place:].strip():
        match = _TOKEN.match(text, place)
        if match is None:
            raise AssertionSyntaxError(f"{text}: cannot read {text[place:].strip()[:20]!r}")
        number, unit, name, symbol = match.groups()
        yield float(number) * _SECONDS[unit or ""] if number else name or symbol
        place = match.end()


def _binary(apply: Callable[[float, float], Value], left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda facts: apply(left(facts), right(facts))


def _divide(left: float, right: float) -> float:
    return left / right if right else float("inf")


def _and(left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda facts: bool(left(facts)) and bool(right(facts))


def _or(left: Evaluate, right: Evaluate) -> Evaluate:
    return lambda facts: bool(left(facts)) or bool(right(facts))
