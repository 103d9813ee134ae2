"""Go's formats of values: the server's messages show values in Go's notation, not in Python's or JSON's.

`quote` is %q, `plain` %v, `number` %v of a number, `literal` %#v, `type_name` %T. `plain_json` is encoding/json, which
escapes what HTML would read and prints a whole float without its point. `parse_nanoseconds` is time.ParseDuration:
`1h30m`, `1.5s`, `-250ms`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

import msgspec

from nodeyard.kube.json import Json

NANOSECONDS: Final = 10**9
LARGEST: Final = (1 << 63) - 1
_DURATION_UNITS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}
_DURATION_PART = re.compile(r"(\d++\.?+\d*+|\.\d++)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_MAX_DIGITS = 19  # of 64 bits

_ESCAPES = {
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
_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def quote(text: str) -> str:
    """Format a string as %q does."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(char) or _escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """Format a number as %v does: a float of a million or more takes an exponent."""
    if isinstance(value, int):
        return str(value)
    digits, exponent = _shortest(value)
    return decimal(value) if -4 <= exponent < 6 else _scientific(value, digits, exponent, width=2)


def decimal(value: float) -> str:
    """Format a number without exponent in the shortest form."""
    if isinstance(value, int):
        return str(value)
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _shortest(value: float) -> tuple[str, int]:
    """Return the shortest digits that identify this float, and the power of ten of the first digit."""
    _, parts, exponent = Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, parts)).lstrip("0")
    first = int(exponent) + len(digits) - 1 if digits else 0
    return digits.rstrip("0") or "0", first


def _scientific(value: float, digits: str, exponent: int, *, width: int) -> str:
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    return f"{'-' if value < 0 else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):0{width}d}"


def plain_json(value: Any) -> str:
    """Format as compact JSON with sorted keys, as encoding/json does."""
    return msgspec.json.encode(_with_go_floats(value), order="sorted").decode().translate(_HTML)


def _with_go_floats(value: Any) -> Any:
    if isinstance(value, float):
        return msgspec.Raw(_json_float(value).encode())
    if isinstance(value, dict):
        return {key: _with_go_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_go_floats(item) for item in value]
    return value


def _json_float(value: float) -> str:
    if value == 0 or 1e-6 <= abs(value) < 1e21:
        return decimal(value)
    digits, exponent = _shortest(value)
    return _scientific(value, digits, exponent, width=1)


def plain(value: Json) -> str:
    """Format as %v does: `map[a:1 b:[x y]]`, strings without quotes."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return number(value)
        case dict():
            return f"map[{' '.join(f'{name}:{plain(value[name])}' for name in sorted(value))}]"
        case list():
            return f"[{' '.join(map(plain, value))}]"
        case _:
            return str(value)


def literal(value: Json) -> str:
    """Format as %#v does: `map[string]interface {}{"a":1}`, strings quoted."""
    match value:
        case None:
            return "interface {}(nil)"
        case str():
            return quote(value)
        case dict():
            members = ", ".join(f"{quote(name)}:{literal(value[name])}" for name in sorted(value))
            return f"map[string]interface {{}}{{{members}}}"
        case list():
            return f"[]interface {{}}{{{', '.join(map(literal, value))}}}"
        case _:
            return plain(value)


def type_name(value: Json) -> str:
    """Format the type of a decoded JSON value as %T does."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case dict():
            return "map[string]interface {}"
        case _:
            return "[]interface {}"


def parse_nanoseconds(text: str) -> int | None:
    """Return the duration in nanoseconds, or None if Go would reject the text or it does not fit 64 bits."""
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest):
        part = _DURATION_PART.match(rest, position)
        if part is None or len(part[1].partition(".")[0].lstrip("0")) > _MAX_DIGITS:
            return None
        total += int(Decimal(part[1]) * _DURATION_UNITS[part[2]])
        position = part.end()
    nanoseconds = -total if sign == "-" else total
    return nanoseconds if rest and -LARGEST - 1 <= nanoseconds <= LARGEST else None
