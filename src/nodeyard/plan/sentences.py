"""The words that messages are made with: a sentence with facts in it, and a list of which only the first are named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

Facts: TypeAlias = Mapping[str, Any]
NAMED: Final = 5
"""How many of a list are named in a sentence."""


class _Blank(dict[str, Any]):
    """A fact that is not there is empty."""

    def __missing__(self, key: str) -> str:
        return ""


def filled(sentence: str, facts: Facts) -> str:
    """The sentence with its facts, and without the gaps that missing ones leave."""
    return " ".join(sentence.format_map(_Blank(facts)).split())


def says(sentence: str) -> Callable[[Facts], str]:
    return lambda facts: filled(sentence, facts)


def listed(items: Sequence[Any], most: int = NAMED) -> str:
    """The first few, and how many more."""
    shown = ", ".join(map(str, items[:most]))
    return f"{shown} and {len(items) - most} more" if len(items) > most else shown
