"""Functions on strings: the standard ones and version 2 of the strings extension.

Positions and lengths count code points.
"""

from __future__ import annotations

from typing import Any

from nodeyard.apiserver.cel.declarations import Overload, function, member, operators
from nodeyard.apiserver.cel.errors import EvaluationError, no_such_overload
from nodeyard.apiserver.cel.library.string_format import format_string

_SPACE = (
    " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_QUOTED = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _texts(left: Any, right: Any) -> None:
    if left.__class__ is not str or right.__class__ is not str:
        raise no_such_overload()


def contains(text: Any, part: Any) -> bool:
    _texts(text, part)
    return part in text


def starts_with(text: Any, prefix: Any) -> bool:
    _texts(text, prefix)
    return bool(text.startswith(prefix))


def ends_with(text: Any, suffix: Any) -> bool:
    _texts(text, suffix)
    return bool(text.endswith(suffix))


def char_at(text: str, position: int) -> str:
    _in_range(position, len(text))
    return text[position : position + 1]


def _in_range(position: int, length: int) -> None:
    if not 0 <= position <= length:
        raise EvaluationError(f"index out of range: {position}")


def index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part) if part else len(text)
    if not part:
        return start
    if start < 0:
        raise EvaluationError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part)) if start < len(text) else -1


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count)


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    characters = list(text)
    if 0 < limit < len(characters):
        return [*characters[: limit - 1], "".join(characters[limit - 1 :])]
    return characters


def substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        _in_range(start, len(text))
        return text[start:]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    _in_range(start, len(text))
    _in_range(end, len(text))
    return text[start:end]


def join(parts: list[Any], separator: str = "") -> str:
    for part in parts:
        if part.__class__ is not str:
            raise EvaluationError(f"join: invalid input: {part}")
    return separator.join(parts)


def quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


OVERLOADS: list[Overload] = [
    *operators("contains", "string, string -> bool", contains, is_member=True),
    *operators("startsWith", "string, string -> bool", starts_with, is_member=True),
    *operators("endsWith", "string, string -> bool", ends_with, is_member=True),
    member("charAt", "string, int -> string", char_at),
    member("indexOf", "string, string -> int", index_of),
    member("indexOf", "string, string, int -> int", index_of),
    member("lastIndexOf", "string, string -> int", last_index_of),
    member("lastIndexOf", "string, string, int -> int", last_index_of),
    member("lowerAscii", "string -> string", lambda text: text.translate(_LOWER)),
    member("upperAscii", "string -> string", lambda text: text.translate(_UPPER)),
    member("replace", "string, string, string -> string", replace),
    member("replace", "string, string, string, int -> string", replace),
    member("split", "string, string -> list(string)", split),
    member("split", "string, string, int -> list(string)", split),
    member("substring", "string, int -> string", substring),
    member("substring", "string, int, int -> string", substring),
    member("trim", "string -> string", lambda text: text.strip(_SPACE)),
    member("join", "list(string) -> string", join),
    member("join", "list(string), string -> string", join),
    member("format", "string, list(dyn) -> string", format_string),
    function("strings.quote", "string -> string", quote),
]
