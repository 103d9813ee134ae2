"""Field paths of CEL rules and selectable fields: `.spec.ports['http'].name`."""

from __future__ import annotations

import re
from typing import NamedTuple

from nodeyard.kube.fields import child, key
from nodeyard.schema.model import Schema

_TOKEN = re.compile(r"'(?:[^']|(?<=\\)')*'|[.\[\]]|(?!')[^.\[\]]+|.", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPathError(ValueError):
    """An invalid path; the text is the error."""


class Resolved(NamedTuple):
    path: str
    """The path in the format of errors: `spec.ports[http].name`."""
    schema: Schema


def resolve(path: str, schema: Schema, *, allows_brackets: bool = True) -> Resolved:
    """Resolve a path in a schema. Raises FieldPathError."""
    tokens = _TOKEN.findall(path)
    written = ""
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token == ".":
            name = _token(tokens, position + 1)
            position += 2
        elif token == "[":
            if not allows_brackets:
                raise FieldPathError("array notation is not allowed")
            name = _unquoted(_token(tokens, position + 1))
            closing = _token(tokens, position + 2)
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
            position += 3
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
        schema, is_named = _step(schema, name)
        written = child(written, name) if is_named else key(written, name)
    return Resolved(written, schema)


def _token(tokens: list[str], position: int) -> str:
    if position >= len(tokens):
        raise FieldPathError("unexpected end of JSON path")
    return tokens[position]


def _unquoted(token: str) -> str:
    if len(token) < 2 or not token.startswith("'") or not token.endswith("'"):
        raise FieldPathError(f"expected single quoted string but got {token}")
    for letter in _ESCAPE.findall(token[1:-1]):
        if letter not in _ESCAPES:
            raise FieldPathError(f"invalid string literal: invalid escape char \\{letter}")
    return _ESCAPE.sub(lambda found: _ESCAPES[found[1]], token[1:-1])


def _step(schema: Schema, name: str) -> tuple[Schema, bool]:
    """Return the schema of a field, or of a map entry."""
    if schema.properties:
        below = schema.properties.get(name)
        if below is not None:
            return below, True
    elif schema.additional is not None:
        return schema.additional, False
    raise FieldPathError("does not refer to a valid field")
