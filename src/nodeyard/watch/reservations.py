"""Reservations: the part of a shared budget that the cache does not show yet.

Several keys may take from one budget, such as the number of objects that may be unavailable during a rollout. A key
reserves its part when it is planned, and releases it when the server has answered its writes: from then on the overlay
shows them. So `collect` counts what the cache shows, plus the reservations of other keys, and no two plans take the
same part. Keys that find the budget spent wait for it in order of arrival.

Reservations are not persisted: a new process starts from the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

WAKE_BATCH: Final = 4
"""Waiting keys that are requeued when a part of a budget is free: some may not need it any more."""


class Reservations:
    def __init__(self) -> None:
        self._reserved: dict[str, dict[str, str]] = {}
        self._waiting: dict[str, dict[str, None]] = {}
        self._budgets: dict[str, tuple[str, ...]] = {}
        """The budgets that each key reserves or waits for."""

    def reserve(self, key: str, reserves: Mapping[str, str], waits_for: Iterable[str] = ()) -> None:
        """Replace what a key reserves, with a token for each budget, and what it waits for."""
        self.drop(key)
        waits = tuple(waits_for)
        if not reserves and not waits:
            return
        self._budgets[key] = (*reserves, *waits)
        for budget, token in reserves.items():
            self._reserved.setdefault(budget, {})[key] = token
        for budget in waits:
            self._waiting.setdefault(budget, {})[key] = None

    def reserved(self, budget: str) -> Mapping[str, str]:
        """Return the keys that reserve a part of the budget, each with its token."""
        return self._reserved.get(budget, {})

    def waiting(self, budget: str) -> Sequence[str]:
        """Return the first keys that wait for the budget: those to requeue when a part of it is free."""
        return tuple(islice(self._waiting.get(budget, ()), WAKE_BATCH))

    def release(self, key: str) -> Sequence[str]:
        """Release what a key reserves; return the keys to requeue. It goes on waiting for other budgets."""
        released = [each for each in self._budgets.get(key, ()) if key in self._reserved.get(each, ())]
        for budget in released:
            _discard(self._reserved, budget, key)
        return [each for budget in released for each in self.waiting(budget)]

    def drop(self, key: str) -> None:
        """Drop all that a key reserves and waits for."""
        for budget in self._budgets.pop(key, ()):
            _discard(self._reserved, budget, key)
            _discard(self._waiting, budget, key)

    def clear(self) -> None:
        for each in (self._reserved, self._waiting, self._budgets):
            each.clear()


def _discard(keys_of: dict[str, dict[str, str]] | dict[str, dict[str, None]], budget: str, key: str) -> None:
    keys = keys_of.get(budget)
    if keys is None:
        return
    keys.pop(key, None)
    if not keys:
        del keys_of[budget]
