"""Rollout slots: concurrent plans of several nodes stay within one budget.

The cache shows a write only after the API server has answered. A slot bridges that gap: it is held until the write is
visible, the key is reconciled again, or the slot expires. A node without a slot waits until another node is done or
gives its slot up. Slots are not persisted: a new process starts from the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

WAKE_BATCH: Final = 4
"""Number of waiting keys that are requeued when a slot is free: some may not need it any more."""
SLOT_TTL: Final = timedelta(seconds=60)
"""Longer than the retries of a write: a holder that has not written by then has failed and must not block others."""

COUNT_TTL: Final = timedelta(seconds=5)
"""Time for which a count of removals is cached."""


class RemovalCount(NamedTuple):
    nodes: int
    """Number of nodes that lose the service object."""
    managed: int
    """Number of managed nodes."""


class RemovalCounts:
    """Cache of the number of nodes that lose a service object: every affected node asks, and a count is linear.

    A count is valid for the same state of its cause, and for a few seconds at most.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[object, Hashable, datetime, RemovalCount]] = {}

    def count(
        self, view: object, group: Hashable, state: Hashable, now: datetime, work: Callable[[], RemovalCount]
    ) -> RemovalCount:
        found = self._known.get(group)
        if found is not None and found[0] is view and found[1] == state and now < found[2]:
            return found[3]
        self._known = {each: entry for each, entry in self._known.items() if now < entry[2]}
        counted = work()
        self._known[group] = (view, state, now + COUNT_TTL, counted)
        return counted


class RolloutSlots:
    def __init__(self) -> None:
        self.removal_counts = RemovalCounts()
        self._held: dict[Hashable, dict[str, datetime]] = {}
        """Slot holders of each group with their expiry, earliest first."""
        self._waiting: dict[Hashable, dict[str, None]] = {}
        """Waiting keys of each group, in order of arrival."""
        self._groups: dict[str, set[Hashable]] = {}

    def clear(self, key: str) -> None:
        """Drop the slots and queue entries of a key that is reconciled again."""
        for group in self._groups.pop(key, set()):
            for noted in (self._held, self._waiting):
                _drop(noted, group, key)

    def release(self, key: str) -> list[str]:
        """Drop a key that needs no slot any more; return the keys to requeue."""
        successors = self.successors(key)
        self.clear(key)
        return successors

    def successors(self, key: str) -> list[str]:
        """Return the keys to requeue in case a holder gives up. It keeps its slot: a write may be in flight."""
        groups = [group for group in self._groups.get(key, ()) if key in self._held.get(group, ())]
        return [each for group in groups for each in self.next_waiting(group)]

    def acquire(self, group: Hashable, key: str, now: datetime, room: int, has_written: Callable[[str], bool]) -> bool:
        """Acquire a slot if fewer than `room` are held; otherwise enqueue the key.

        A holder whose write is visible counts as unavailable in the cache, so its slot is freed. This is checked only
        if the group is full, because thousands of slots may be held at once.
        """
        held = self._held.setdefault(group, {})
        is_known = held.pop(key, None) is not None
        if not is_known and len(held) >= room:
            for each in [each for each, until in held.items() if until <= now or has_written(each)]:
                del held[each]
        if not is_known and len(held) >= room:
            if not held:
                del self._held[group]
            self.enqueue(group, key)
            return False
        held[key] = now + SLOT_TTL
        self._groups.setdefault(key, set()).add(group)
        return True

    def enqueue(self, group: Hashable, key: str) -> None:
        self._waiting.setdefault(group, {})[key] = None
        self._groups.setdefault(key, set()).add(group)

    def next_waiting(self, group: Hashable) -> list[str]:
        """Return the waiting keys to requeue when a slot is free."""
        return list(islice(self._waiting.get(group, ()), WAKE_BATCH))

    def held(self, group: Hashable) -> int:
        """Count held slots. Right after a refused `acquire`, these are the holders that have not written yet."""
        return len(self._held.get(group, ()))

    def next_expiry(self, group: Hashable) -> datetime | None:
        """Return the earliest expiry of an unused slot."""
        return next(iter(self._held.get(group, {}).values()), None)


def _drop(
    noted: dict[Hashable, dict[str, datetime]] | dict[Hashable, dict[str, None]], group: Hashable, key: str
) -> None:
    keys = noted.get(group)
    if keys is None:
        return
    keys.pop(key, None)
    if not keys:
        del noted[group]
