"""Plain text layout for a terminal: wraps, indents and truncates. It uses no colours."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Final

import msgspec

from nodeyard.kube.json import Json

WIDTH: Final = 100
_CUT = "..."
_COMMAND = re.compile(r"`[^`]{1,60}`")
_JOINT = "\x00"
_LEAST = 12
encode = msgspec.json.Encoder(order="sorted").encode


def paragraph(text: str, indent: int, width: int = WIDTH, hang: int = 0) -> Iterator[str]:
    """Wrap the text to `width` columns; longer words exceed the width instead of being broken.

    A command in backquotes is not wrapped, so that it can be copied.
    """
    lines = textwrap.wrap(
        _COMMAND.sub(lambda found: found[0].replace(" ", _JOINT), text),
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from (line.replace(_JOINT, " ") for line in lines)


def format_value(value: Json, room: int) -> str:
    """Format a value as compact JSON, truncated in the middle to `room` characters."""
    text = encode(value).decode()
    room = max(room, _LEAST)
    if len(text) <= room:
        return text
    tail = (room - len(_CUT)) // 3
    return text[: room - len(_CUT) - tail] + _CUT + text[len(text) - tail :]


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return the number with its noun: `1 action`, `2 actions`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def pluralize(kind: str) -> str:
    """Return the plural of a kind: `Nodes`, `NetworkPolicies`, `LatticeNodeClasses`."""
    if kind.endswith(("s", "x", "ch")):
        return f"{kind}es"
    return f"{kind[:-1]}ies" if kind.endswith("y") and kind[-2:-1] not in set("aeiou") else f"{kind}s"
