"""Regular expressions: `matches`, `find`, `findAll`."""

from __future__ import annotations

from typing import Any

from nodeyard.schema.cel.declarations import Overload, member, operators
from nodeyard.schema.cel.errors import no_such_overload
from nodeyard.schema.cel.patterns import compile_pattern


def matches(text: Any, pattern: Any) -> bool:
    if text.__class__ is not str or pattern.__class__ is not str:
        raise no_such_overload()
    return compile_pattern(pattern).matches(text)


def find(text: str, pattern: str) -> str:
    found = compile_pattern(pattern).find_all(text, 1)
    return found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return compile_pattern(pattern).find_all(text, limit)


OVERLOADS: list[Overload] = [
    *operators("matches", "string, string -> bool", matches),
    *operators("matches", "string, string -> bool", matches, is_member=True),
    member("find", "string, string -> string", find),
    member("findAll", "string, string -> list(string)", find_all),
    member("findAll", "string, string, int -> list(string)", find_all),
]

# Functions whose pattern, if it is a constant, must be one when the expression is compiled.
WITH_PATTERN = {"matches", "find", "findAll"}
