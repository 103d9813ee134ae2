"""Helpers that format messages: fill a template with facts, and list the first few items of many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

Facts: TypeAlias = Mapping[str, Any]
NAMED: Final = 5
"""Number of items that a message names at most."""


class _Blank(dict[str, Any]):
    """Facts in which a missing key is an empty string."""

    def __missing__(self, key: str) -> str:
        return ""


def filled(sentence: str, facts: Facts) -> str:
    """Fill the template with facts, and collapse the gaps that missing facts leave."""
    return " ".join(sentence.format_map(_Blank(facts)).split())


def says(sentence: str) -> Callable[[Facts], str]:
    """Return a function that fills this template."""
    return lambda facts: filled(sentence, facts)


def listed(items: Sequence[Any], most: int = NAMED) -> str:
    """Join the first few items and count the rest: `a, b and 3 more`."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown
