"""Who may be disturbed now: plans of several nodes are made at once, and together they keep to the budget.

What a node has written is seen by all once it is answered; what it is about to write is not. So whoever is let through
is noted here until its key is looked at again, which every write and every failure leads to; and whoever is not waits
here until somebody is done. Nothing of it has to outlive the process: a new one begins with what is seen.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from itertools import islice

NEXT = 4
"""How many are woken when a place is free: one may not want it any more."""


class Grants:
    def __init__(self) -> None:
        self._given: dict[Hashable, set[str]] = {}
        self._waiting: dict[Hashable, dict[str, None]] = {}
        """In the order in which they came."""
        self._groups: dict[str, set[Hashable]] = {}

    def withdraw(self, key: str) -> None:
        """The key is looked at anew: what it was let through for has been done, or not."""
        for group in self._groups.pop(key, set()):
            self._given.get(group, set()).discard(key)
            self._waiting.get(group, {}).pop(key, None)
            if not self._given.get(group):
                self._given.pop(group, None)
            if not self._waiting.get(group):
                self._waiting.pop(group, None)

    def ask(self, group: Hashable, key: str, disturbed: Collection[str], limit: int) -> bool:
        """Whether one more of a group may be disturbed, when these are seen to be; else it waits.

        Whoever was let through and has written since is seen already, and counts once.
        """
        given = self._given.get(group, set())
        if key not in given and len(given.union(disturbed)) >= limit:
            self.wait(group, key)
            return False
        self._given.setdefault(group, set()).add(key)
        self._groups.setdefault(key, set()).add(group)
        return True

    def wait(self, group: Hashable, key: str) -> None:
        self._waiting.setdefault(group, {})[key] = None
        self._groups.setdefault(key, set()).add(group)

    def next(self, group: Hashable) -> list[str]:
        """Who may ask again, now that one is done."""
        return list(islice(self._waiting.get(group, ()), NEXT))
