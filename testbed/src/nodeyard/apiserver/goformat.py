"""Values as Go prints them, where an answer of the API server carries them: fmt's %v, %#v and %T, and encoding/json."""

from __future__ import annotations

import re

import msgspec

from nodeyard.kube.goformat import number, quote
from nodeyard.kube.json import Json

_encode_sorted = msgspec.json.Encoder(order="sorted").encode

# What encoding/json escapes inside strings so that JSON may stand in HTML and in JavaScript.
_UNSAFE = re.compile("[<>&\u2028\u2029]")


def plain(value: Json) -> str:
    """%v: `map[a:1 b:[x y]]`, strings bare."""
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
    """%#v: `map[string]interface {}{"a":1}`, strings quoted."""
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
    """%T of a decoded JSON value."""
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


def json_text(value: Json) -> str:
    """encoding/json: sorted members, no spaces, HTML escaped, whole floats without a point."""
    text = _encode_sorted(_whole(value)).decode()
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _whole(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value
