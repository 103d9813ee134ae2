"""Events about how things stand, told when they come to stand so and not at every look.

A refusal holds for hours, and a key is planned at every event. Each pass says what stands now; what already stood so at
the pass before, in the same words, is not told again. What ended and comes back is news.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, TypeVar

from nodeyard.apply.events import Occurrence
from nodeyard.plan.model import ObjectRef

Some = TypeVar("Some", bound=Occurrence)
Told: TypeAlias = tuple[ObjectRef, str, str, str]


class Standing:
    """What stood at the last pass of each key."""

    def __init__(self) -> None:
        self._told: dict[str, frozenset[Told]] = {}

    def fresh(self, key: str, occurrences: Iterable[Some]) -> list[Some]:
        """Everything that stands now; those that did not at the pass before."""
        now = {(each.object, each.type, each.reason, each.message): each for each in occurrences}
        before = self._told.get(key, frozenset())
        self._told[key] = frozenset(now)
        return [each for told, each in now.items() if told not in before]

    def forget(self, key: str) -> None:
        self._told.pop(key, None)
