"""JSONPath as used by printer columns and selectable fields, compiled once.

`.spec.replicas`, `.metadata.labels['a\\.b']`, `.status.conditions[?(@.type=="Ready")].status`, `.items[0]`,
`.items[*]`: the simple paths of kubectl's JSONPath. A path to a missing field finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from nodeyard.kube.json import Json, json_equal

Step = Callable[[Json], Iterable[Json]]

_NAME = re.compile(r"\.((?:[^.\[\]\\]|\\.)+)")
_QUOTED = re.compile(r"\[(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\]")
_INDEX = re.compile(r"\[(-?\d{1,18})\]")
_SLICE = re.compile(r"\[(-?\d{1,18})?:(-?\d{1,18})?\]")
_ALL = re.compile(r"\[\*\]|\.\*")
# Users write the paths: nothing here may match one text in two ways.
_OPERAND = r"\[\?\(\s*+@((?:[^=!<>()\s\\]|\\.)++)\s*+"
_FILTER = re.compile(_OPERAND + r"(==|!=|<=|>=|<|>)([^)]*+)\)\]")
_EXISTS = re.compile(_OPERAND + r"\)\]")


class JsonPathError(ValueError):
    """An invalid path."""


class JsonPath:
    """A compiled path; `find` yields every matching value."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps = list(_parse(text))

    def find(self, value: Json) -> list[Json]:
        found: list[Json] = [value]
        for step in self._steps:
            if not found:
                break
            found = [result for item in found for result in step(item)]
        return found

    def first(self, value: Json) -> Json:
        """Return the first value, or None."""
        found = self.find(value)
        return found[0] if found else None


def _parse(text: str) -> Iterator[Step]:
    rest = text.strip()
    if rest.startswith("{") and rest.endswith("}"):
        rest = rest[1:-1]
    rest = rest.removeprefix("$")
    if rest and rest[0] not in ".[":
        rest = "." + rest
    if rest in ("", "."):
        return
    place = 0
    while place < len(rest):
        step, place = _next(text, rest, place)
        yield step


def _next(text: str, rest: str, place: int) -> tuple[Step, int]:
    for pattern, make in _GRAMMAR:
        match = pattern.match(rest, place)
        if match:
            return make(match), match.end()
    raise JsonPathError(f"cannot read {rest[place:]!r} in JSONPath {text!r}")


def _field(match: re.Match[str]) -> Step:
    name = re.sub(r"\\(.)", r"\1", next(group for group in match.groups() if group is not None))

    def step(value: Json) -> Iterable[Json]:
        return (value[name],) if isinstance(value, dict) and name in value else ()

    return step


def _at(match: re.Match[str]) -> Step:
    position = int(match.group(1))

    def step(value: Json) -> Iterable[Json]:
        if isinstance(value, list) and -len(value) <= position < len(value):
            return (value[position],)
        return ()

    return step


def _slice(match: re.Match[str]) -> Step:
    low, high = (int(bound) if bound else None for bound in match.groups())
    return lambda value: value[low:high] if isinstance(value, list) else ()


def _all(_match: re.Match[str]) -> Step:
    def step(value: Json) -> Iterable[Json]:
        if isinstance(value, dict):
            return list(value.values())
        return value if isinstance(value, list) else ()

    return step


def _filter(match: re.Match[str]) -> Step:
    path, operator, literal = JsonPath(match.group(1)), match.group(2), _literal(match.group(3).strip())

    def step(value: Json) -> Iterable[Json]:
        items = value if isinstance(value, list) else ()
        return [item for item in items if any(_compare(found, operator, literal) for found in path.find(item))]

    return step


def _exists(match: re.Match[str]) -> Step:
    path = JsonPath(match.group(1))
    return lambda value: [item for item in value if path.find(item)] if isinstance(value, list) else ()


def _literal(text: str) -> Json:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        raise JsonPathError(f"cannot read {text!r} as a value") from None


def _compare(found: Json, operator: str, literal: Json) -> bool:
    if operator in ("==", "!="):
        return json_equal(found, literal, by_value=True) is (operator == "==")
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not isinstance(literal, (int, float)):
        return False
    return {"<": found < literal, ">": found > literal, "<=": found <= literal, ">=": found >= literal}[operator]


_GRAMMAR: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_ALL, _all),
    (_QUOTED, _field),
    (_INDEX, _at),
    (_SLICE, _slice),
    (_FILTER, _filter),
    (_EXISTS, _exists),
    (_NAME, _field),
)
