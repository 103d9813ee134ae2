"""The lexer: source text to tokens, and the values of literals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nodeyard.apiserver.cel.values import INT_MAX, UINT_MAX, UInt


class LexicalError(Exception):
    """An invalid token or literal."""

    def __init__(self, text: str, offset: int = -1) -> None:
        super().__init__(f"token recognition error at: '{text}'")
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """`name`, `string`, `bytes`, `int`, `uint`, `float`, `end`, or the operator or keyword itself."""
    text: str
    offset: int


_TOKEN = re.compile(
    r"""
    (?P<skip>[ \t\r\n\f]+|//[^\n]*)
  | (?P<bytes>[bB][rR]?(?:\"""|'''|"|'))
  | (?P<string>[rR]?(?:\"""|'''|"|'))
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|\d+)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<operator>&&|\|\||[<>=!]=|[-+*/%<>!?:.,(){}\[\]])
    """,
    re.VERBOSE | re.ASCII,
)
_KEYWORDS = {"in", "true", "false", "null"}
_BODIES = {
    '"': re.compile(r'(?:[^"\\\n\r]|\\[^\n\r])*"'),
    "'": re.compile(r"(?:[^'\\\n\r]|\\[^\n\r])*'"),
    '"""': re.compile(r'(?:[^\\]|\\.)*?"""', re.DOTALL),
    "'''": re.compile(r"(?:[^\\]|\\.)*?'''", re.DOTALL),
}
_RAW_BODIES = {
    '"': re.compile(r'[^"\n\r]*"'),
    "'": re.compile(r"[^'\n\r]*'"),
    '"""': re.compile(r'.*?"""', re.DOTALL),
    "'''": re.compile(r".*?'''", re.DOTALL),
}
_ESCAPE = re.compile(
    r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL | re.ASCII
)
_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "?": 63, '"': 34, "'": 39, "`": 96}


def tokenize(source: str) -> Iterator[Token]:
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            raise LexicalError(source[position], position)
        kind, text = match.lastgroup, match[0]
        if kind in ("string", "bytes"):
            text = _quoted(source, match)
        elif kind == "operator" or text in _KEYWORDS:
            kind = text
        if kind != "skip":
            yield Token(kind, text, position)
        position += len(text)
    yield Token("end", "", len(source))


def _quoted(source: str, opening: re.Match[str]) -> str:
    """Return the whole literal, from its prefix to its closing quote."""
    prefix = opening[0].rstrip("\"'")
    bodies = _RAW_BODIES if "r" in prefix.lower() else _BODIES
    closing = bodies[opening[0][len(prefix) :]].match(source, opening.end())
    if closing is None:
        raise LexicalError(source[opening.start() :], opening.start())
    return source[opening.start() : closing.end()]


def literal_value(token: Token) -> Any:
    """Return the value of a number, string or bytes literal. Raises LexicalError."""
    text = token.text
    if token.kind == "float":
        return float(text)
    if token.kind == "int":
        return _integer(text, INT_MAX)
    if token.kind == "uint":
        return UInt(_integer(text[:-1], UINT_MAX))
    prefix = text[: len(text) - len(text.lstrip("bBrR"))]
    quotes = 3 if text[len(prefix) :].startswith(('"""', "'''")) else 1
    body = text[len(prefix) + quotes : -quotes]
    is_raw = "r" in prefix.lower()
    if token.kind == "bytes":
        return body.encode() if is_raw else _unescaped_bytes(body)
    return body if is_raw else _unescaped(body)


def _integer(text: str, most: int) -> int:
    value = int(text, 16) if text.startswith("0x") else int(text)
    # One more than fits: with a minus it is the smallest integer. Without one the parser refuses it.
    if value > most + 1:
        raise LexicalError(text)
    return value


def _unescaped(body: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = _code(match)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise LexicalError(match[0])
        return chr(code)

    return _ESCAPE.sub(character, body)


def _unescaped_bytes(body: str) -> bytes:
    parts: list[bytes] = []
    position = 0
    for match in _ESCAPE.finditer(body):
        if match[2] or match[3]:
            raise LexicalError(match[0])
        parts += [body[position : match.start()].encode(), bytes([_code(match)])]
        position = match.end()
    return b"".join([*parts, body[position:].encode()])


def _code(match: re.Match[str]) -> int:
    hexadecimal = match[1] or match[2] or match[3]
    if hexadecimal:
        return int(hexadecimal, 16)
    if match[4]:
        return int(match[4], 8)
    if match[5] not in _SIMPLE:
        raise LexicalError(match[0])
    return _SIMPLE[match[5]]
