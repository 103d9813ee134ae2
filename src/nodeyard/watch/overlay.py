"""Overlay of our own writes over the cache, for read-your-writes.

The server's response to a write is newer than the cache. The cache shows it until the watch delivers that
resourceVersion or a later one, so the next plan sees its own writes without waiting. A deletion has no resourceVersion:
it is shown until the watch delivers the deletion or a new object of that name.

Each pending write has a deadline. After it the informer factory confirms the write by a GET (`Cache.overdue`,
`Cache.settle`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from nodeyard.kube.object_key import Key, is_at_least

T = TypeVar("T")


class PendingWrite(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A write that the watch has not delivered yet."""

    shown: T | None
    """The object after the write; None if it is deleted or no longer matches the selectors."""
    watched: T | None
    """The object that the watch last delivered."""
    version: str
    """The resourceVersion of the write; for a deletion, the last known resourceVersion of the object."""
    uid: str
    is_deletion: bool = False
    deadline: float


class Overlay(Generic[T]):
    """The pending writes of one cache. Methods that confirm a write return the object to show from then on."""

    def __init__(self) -> None:
        self._pending: dict[Key, PendingWrite[T]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._pending

    def __len__(self) -> int:
        return len(self._pending)

    def get(self, key: Key) -> PendingWrite[T] | None:
        return self._pending.get(key)

    def hold(self, key: Key, own: PendingWrite[T]) -> None:
        self._pending[key] = own

    def drop(self, key: Key) -> None:
        del self._pending[key]

    def overdue(self, now: float) -> list[tuple[Key, PendingWrite[T]]]:
        return [(key, own) for key, own in self._pending.items() if own.deadline <= now]

    def deliver(self, key: Key, delivered: T | None, version: str, uid: str) -> T | None:
        """Process a watch event of this object, None for a deletion; return the object to show."""
        own = self._pending[key]
        if _is_confirmed(own, delivered is None, version, uid):
            del self._pending[key]
            return delivered
        self._pending[key] = msgspec.structs.replace(own, watched=delivered)
        return own.shown

    def relist(self, listed: Mapping[Key, T], uids: Mapping[Key, str], version: str) -> Iterator[tuple[Key, T | None]]:
        """Process a complete list at this resourceVersion; yield the object to show for each pending write."""
        for key, own in list(self._pending.items()):
            item = listed.get(key)
            if is_at_least(version, own.version) and not (own.is_deletion and uids.get(key) == own.uid):
                del self._pending[key]
                yield key, item
            else:
                self._pending[key] = msgspec.structs.replace(own, watched=item)
                yield key, own.shown

    def bookmark(self, version: str) -> list[tuple[Key, T | None]]:
        """Process a bookmark: drop older pending writes, which the watch would have delivered if they were selected."""
        passed = [
            (key, own.watched)
            for key, own in self._pending.items()
            if not own.is_deletion and is_at_least(version, own.version)
        ]
        for key, _ in passed:
            del self._pending[key]
        return passed


def _is_confirmed(own: PendingWrite[Any], is_deleted: bool, version: str, uid: str) -> bool:
    if own.is_deletion and uid == own.uid:
        return is_deleted
    return is_at_least(version, own.version)
