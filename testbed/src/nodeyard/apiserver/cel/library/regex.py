"""Regular expressions: `matches`, `find`, `findAll`."""

from __future__ import annotations

from typing import Any

from nodeyard.apiserver.cel.declarations import Overload, member, operators
from nodeyard.apiserver.cel.errors import EvaluationError, no_such_overload
from nodeyard.schema.patterns import Pattern, PatternError, compile_pattern


def compiled(source: str) -> Pattern:
    """Compile a pattern; raises EvaluationError for an invalid one."""
    try:
        return compile_pattern(source)
    except PatternError as error:
        raise EvaluationError(str(error)) from None


def matches(text: Any, pattern: Any) -> bool:
    if text.__class__ is not str or pattern.__class__ is not str:
        raise no_such_overload()
    return compiled(pattern).matches(text)


def find(text: str, pattern: str) -> str:
    found = compiled(pattern).find_all(text, 1)
    return found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return compiled(pattern).find_all(text, limit)


OVERLOADS: list[Overload] = [
    *operators("matches", "string, string -> bool", matches),
    *operators("matches", "string, string -> bool", matches, is_member=True),
    member("find", "string, string -> string", find),
    member("findAll", "string, string -> list(string)", find_all),
    member("findAll", "string, string, int -> list(string)", find_all),
]

# Functions whose constant patterns are checked at compile time.
WITH_PATTERN = {"matches", "find", "findAll"}
