"""Regular expressions as the API server understands them, without its guarantee given up: RE2 never runs away.

`nodeyard.schema.patterns` reads a pattern as Go does and writes it for Python's `re`, which is quick but backtracks. A
pattern that could make it backtrack without end is matched by the engine instead, which carries RE2 itself; that
compiles the pattern anew each time and takes some 25 microseconds.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

from cel_expr_python import cel

from nodeyard.schema import patterns
from nodeyard.schema.cel.errors import EvaluationError

_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]])*\]|[*+]|\{\d+,\d*\}|.", re.DOTALL)
_UNBOUNDED = re.compile(r"[*+]|\{\d+,\}")
_UNGREEDY = re.compile(r"\(\?[ims-]*U")


@cache
def _engine() -> Any:
    text = cel.Type.STRING
    return cel.NewEnv(variables={"text": text, "pattern": text}).compile("text.matches(pattern)")


def re2_finds(pattern: str, text: str) -> bool:
    """Whether the pattern occurs anywhere in the text, asked of RE2; EvaluationError where that does not take it."""
    outcome = _engine().eval(data={"text": text, "pattern": pattern}).plain_value()
    if outcome is True or outcome is False:
        return bool(outcome)
    raise EvaluationError(f"error parsing regexp: {outcome}")


class Pattern:
    def __init__(self, source: str) -> None:
        try:
            self._native = patterns.compile_pattern(source)
        except patterns.PatternError as error:
            raise EvaluationError(str(error)) from None
        self._source = source
        self._can_explode = can_explode(source)
        self._is_ungreedy = _UNGREEDY.search(source) is not None

    def matches(self, text: str) -> bool:
        """Whether the pattern occurs anywhere in the text."""
        if not self._can_explode:
            return self._native.search(text) is not None
        return re2_finds(self._source, text)

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """What the pattern matches, from left to right, at most as many as the limit if it is not negative."""
        if self._is_ungreedy:
            raise EvaluationError(f"unsupported flag in regular expression: `{self._source}`")
        if self._can_explode and not self.matches(text):
            return []
        found: list[str] = []
        end = -1
        for match in self._native.finditer(text):
            if len(found) == limit:
                break
            if match.start() == match.end() == end:
                continue  # an empty match right after another does not count
            end = match.end()
            found.append(match[0])
        return found


def can_explode(source: str) -> bool:
    """Whether a group that leaves a choice inside is repeated without bound: what can take `re` exponential time."""
    has_choice = [False]
    closed = False
    for token in _TOKEN.findall(source):
        if token == "(":
            has_choice.append(False)
        elif token == ")" and len(has_choice) > 1:
            closed = has_choice.pop()
            has_choice[-1] = has_choice[-1] or closed
            continue
        elif _UNBOUNDED.fullmatch(token):
            if closed:
                return True
            has_choice[-1] = True
        elif token in ("|", "?"):
            has_choice[-1] = True
        closed = False
    return False


@lru_cache(maxsize=1024)
def compile_pattern(source: str) -> Pattern:
    """The pattern, or EvaluationError that says what is wrong with it."""
    return Pattern(source)
