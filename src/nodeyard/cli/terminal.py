"""The terminal that a command prints on: its width, and whether it shows colours."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from typing import Final

import typer

from nodeyard.plan.layout import WIDTH
from nodeyard.plan.style import Style

COLOR_HELP: Final = "Colours: auto shows them on a terminal, unless NO_COLOR is set."
NARROWEST: Final = 40
WIDEST: Final = 200


class Color(StrEnum):
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def find_style(color: Color, *, is_full: bool = False) -> Style:
    """Return the style for stdout. The width is that of the terminal, $COLUMNS, or 100 for a file or pipe."""
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return Style(max(NARROWEST, min(columns, WIDEST)), is_full, _is_coloured(color))


def _is_coloured(color: Color) -> bool:
    if color is not Color.AUTO:
        return color is Color.ALWAYS
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def echo(text: str, style: Style) -> None:
    """Print a text that the style has painted; typer would remove the colours from a pipe."""
    typer.echo(text, nl=False, color=style.is_coloured)
