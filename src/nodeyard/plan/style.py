"""Style of a text on the terminal: width, colours, and whether equal things are folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from nodeyard.plan.layout import WIDTH, paragraph


class Role(Enum):
    """The role of a line; its value is the ANSI style."""

    PLAIN = ""
    TITLE = "1"
    QUIET = "2"
    REMOVED = "31"
    ADDED = "32"
    CHANGED = "33"
    BLOCKED = "1;33"
    DISRUPTIVE = "1;31"


Line: TypeAlias = tuple[Role, str]
# Names and messages come from the cluster: they must neither move the cursor nor turn the direction of the text.
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """Replace control characters."""
    return _CONTROL.sub(_REPLACEMENT, text)


@dataclass(frozen=True)
class Style:
    width: int = WIDTH
    is_full: bool = False
    """Show every object, value and text."""
    is_coloured: bool = False

    def paint(self, lines: Iterable[Line]) -> str:
        """Return the lines as text, without control characters of others."""
        return "".join(f"{self._paint(role, clean(text))}\n" for role, text in lines)

    def _paint(self, role: Role, text: str) -> str:
        if not self.is_coloured or not text or role is Role.PLAIN:
            return text
        bare = text.lstrip(" ")
        return f"{text[: len(text) - len(bare)]}\x1b[{role.value}m{bare}\x1b[0m"

    def paragraph(self, text: str, indent: int, role: Role = Role.PLAIN) -> Iterator[Line]:
        return ((role, line) for line in paragraph(text, indent, self.width, hang=2))


PLAIN: Final = Style()
BLANK: Final[Line] = (Role.PLAIN, "")
