"""Plain text for a terminal: wrapped, indented, values cut to fit. No colours, the same for everyone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

import msgspec

from nodeyard.kube.json import Json

WIDTH: Final = 100
_CUT = "..."
_LEAST = 12
_encode = msgspec.json.Encoder(order="sorted").encode


def paragraph(text: str, indent: int, width: int = WIDTH, hang: int = 0) -> Iterator[str]:
    """The text in lines of at most `width`; words too long for a line stand out rather than break."""
    yield from textwrap.wrap(
        text,
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )


def shown(value: Json, room: int) -> str:
    """A value as compact JSON, cut in the middle where it is longer than the room."""
    text = _encode(value).decode()
    room = max(room, _LEAST)
    if len(text) <= room:
        return text
    tail = (room - len(_CUT)) // 3
    return text[: room - len(_CUT) - tail] + _CUT + text[len(text) - tail :]


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 action`, `2 actions`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
