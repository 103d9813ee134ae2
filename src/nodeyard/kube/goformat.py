"""Go's number and string formats: the server's messages quote values in Go's notation, not in Python's or JSON's.

`quote` is %q, `number` is %v of a number, `plain_json` is encoding/json, which escapes what HTML would read and prints
a whole float without its point.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

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
