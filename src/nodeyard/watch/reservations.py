"""Reservations: the part of a shared budget that the cache does not show yet.

Several keys may take from one budget, such as the number of objects that may be unavailable during a rollout. A key
reserves its part when it is planned, and releases it when the server has answered its writes: from then on the overlay
shows them. So `collect` counts what the cache shows, plus the reservations of other keys, and no two plans take the
same part. Keys that find the budget spent wait for it in order of arrival.

A plan is computed from the reservations at the time of `collect`, and another key may reserve or release while it is
computed in a thread. `reserve` then refuses the plan, and the key is planned again (optimistic locking).

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
        self._changed: dict[str, set[str]] = {}
        """The budgets that changed since `begin`, for each key that is being planned."""

    def begin(self, key: str) -> None:
        """Drop what a key has: it is planned anew, from the reservations as they are now."""
        self.drop(key)
        self._changed[key] = set()

    def reserve(self, key: str, reserves: Mapping[str, str], waits_for: Iterable[str] = ()) -> bool:
        """Replace what a key reserves, with a token for each budget, and what it waits for.

        Return False, and reserve nothing, if the reservations of one of these budgets have changed since `begin`.
        """
        changed = self._changed.pop(key, set[str]())
        self.drop(key)
        waits = tuple(waits_for)
        if not reserves and not waits:
            return True
        if not changed.isdisjoint((*reserves, *waits)):
            return False
        self._budgets[key] = (*reserves, *waits)
        for budget, token in reserves.items():
            self._reserved.setdefault(budget, {})[key] = token
            self._mark_changed(budget)
        for budget in waits:
            self._waiting.setdefault(budget, {})[key] = None
        return True

    def reserved(self, budget: str) -> Mapping[str, str]:
        """Return the keys that reserve a part of the budget, each with its token."""
        return self._reserved.get(budget, {})

    def waiting(self, budget: str) -> Sequence[str]:
        """Return the first keys that wait for the budget: those to requeue when a part of it is free."""
        return tuple(islice(self._waiting.get(budget, ()), WAKE_BATCH))

    def release(self, key: str) -> Sequence[str]:
        """Release what a key reserves; return the keys to requeue. It goes on waiting for other budgets."""
        self._changed.pop(key, None)
        released = [each for each in self._budgets.get(key, ()) if key in self._reserved.get(each, ())]
        for budget in released:
            _discard(self._reserved, budget, key)
            self._mark_changed(budget)
        return [each for budget in released for each in self.waiting(budget)]

    def drop(self, key: str) -> None:
        """Drop all that a key reserves and waits for."""
        for budget in self._budgets.pop(key, ()):
            if key in self._reserved.get(budget, ()):
                _discard(self._reserved, budget, key)
                self._mark_changed(budget)
            _discard(self._waiting, budget, key)

    def clear(self) -> None:
        for each in (self._reserved, self._waiting, self._budgets, self._changed):
            each.clear()

    def _mark_changed(self, budget: str) -> None:
        # At most as many keys are planned at a time as there are workers.
        for changed in self._changed.values():
            changed.add(budget)


def _discard(keys_of: dict[str, dict[str, str]] | dict[str, dict[str, None]], budget: str, key: str) -> None:
    keys = keys_of.get(budget)
    if keys is None:
        return
    keys.pop(key, None)
    if not keys:
        del keys_of[budget]
