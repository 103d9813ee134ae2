"""Who may be disturbed now: plans of several nodes are made at once, and together they keep to the budget.

What a node has written is seen by all once it is answered; what it is about to write is not. So whoever is let through
is noted here until that is seen, its key is looked at again, or its time is over; and whoever is not waits here until
somebody is done, or leaves without having begun. Nothing of it has to outlive the process: a new one begins with what
is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

NEXT: Final = 4
"""How many are woken when a place is free: one may not want it any more."""
LASTS: Final = timedelta(seconds=60)
"""Longer than a write is tried for: who has not written by then could not, and shall not keep the others waiting."""


class Grants:
    def __init__(self) -> None:
        self._given: dict[Hashable, dict[str, datetime]] = {}
        """Who was let through, and until when that counts; the first to lapse comes first."""
        self._waiting: dict[Hashable, dict[str, None]] = {}
        """In the order in which they came."""
        self._groups: dict[str, set[Hashable]] = {}

    def withdraw(self, key: str) -> None:
        """The key is looked at anew: what it was let through for has been done, or not."""
        for group in self._groups.pop(key, set()):
            for noted in (self._given, self._waiting):
                _drop(noted, group, key)

    def release(self, key: str) -> list[str]:
        """The key has nothing left to be disturbed: who may ask for its place instead."""
        heirs = self.behind(key)
        self.withdraw(key)
        return heirs

    def behind(self, key: str) -> list[str]:
        """Who may ask for the key's place, should it turn out not to want it any more. Until then it has the place: it
        may be writing just now."""
        groups = [group for group in self._groups.get(key, ()) if key in self._given.get(group, ())]
        return [each for group in groups for each in self.next(group)]

    def ask(self, group: Hashable, key: str, now: datetime, room: int, has_written: Callable[[str], bool]) -> bool:
        """Whether one more of a group may be disturbed, where there is room for so many; else it waits.

        Who has written is seen to be disturbed from then on, and not counted here too. That is looked into only where
        it decides: thousands may be let through at once.
        """
        given = self._given.setdefault(group, {})
        is_known = given.pop(key, None) is not None
        if not is_known and len(given) >= room:
            for each in [each for each, until in given.items() if until <= now or has_written(each)]:
                del given[each]
        if not is_known and len(given) >= room:
            if not given:
                del self._given[group]
            self.wait(group, key)
            return False
        given[key] = now + LASTS
        self._groups.setdefault(key, set()).add(group)
        return True

    def wait(self, group: Hashable, key: str) -> None:
        self._waiting.setdefault(group, {})[key] = None
        self._groups.setdefault(key, set()).add(group)

    def next(self, group: Hashable) -> list[str]:
        """Who may ask again, now that one is done."""
        return list(islice(self._waiting.get(group, ()), NEXT))

    def count(self, group: Hashable) -> int:
        """How many were let through. Right after somebody was not: those who have not written yet."""
        return len(self._given.get(group, ()))

    def lapse(self, group: Hashable) -> datetime | None:
        """When the first place is free again that nobody has made use of."""
        return next(iter(self._given.get(group, {}).values()), None)


def _drop(
    noted: dict[Hashable, dict[str, datetime]] | dict[Hashable, dict[str, None]], group: Hashable, key: str
) -> None:
    keys = noted.get(group)
    if keys is None:
        return
    keys.pop(key, None)
    if not keys:
        del noted[group]
