"""What we wrote, until the watch has told it back.

The server's answer to a write is newer than the cache. It is shown in place of what the watch last delivered until the
watch has delivered that resource version or a later one, so the next plan sees its own writes and nobody waits for
them. A deletion has no version of its own: it stands until the watch has told of it, or of another object by that name.

Each record has a deadline. One that outlives it is settled by a GET, whoever runs it (`Cache.overdue`, `settle`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from nodeyard.kube.identity import Key, is_at_least

T = TypeVar("T")


class Own(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One unconfirmed write."""

    shown: T | None
    """What the object is by our knowledge; None where it is gone, or has left what is watched."""
    watched: T | None
    """What the watch last delivered, meanwhile."""
    version: str
    """Of the write; of a deletion, the last version the deleted object is known to have had."""
    uid: str
    is_deletion: bool = False
    deadline: float


class Overlay(Generic[T]):
    """The unconfirmed writes of one cache. Every method that ends one returns what is to be shown from here on."""

    def __init__(self) -> None:
        self._own: dict[Key, Own[T]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._own

    def __len__(self) -> int:
        return len(self._own)

    def get(self, key: Key) -> Own[T] | None:
        return self._own.get(key)

    def hold(self, key: Key, own: Own[T]) -> None:
        self._own[key] = own

    def drop(self, key: Key) -> None:
        del self._own[key]

    def overdue(self, now: float) -> list[tuple[Key, Own[T]]]:
        return [(key, own) for key, own in self._own.items() if own.deadline <= now]

    def deliver(self, key: Key, delivered: T | None, version: str, uid: str) -> T | None:
        """The watch has spoken of this object; None means deleted."""
        own = self._own[key]
        if _is_told(own, delivered is None, version, uid):
            del self._own[key]
            return delivered
        self._own[key] = msgspec.structs.replace(own, watched=delivered)
        return own.shown

    def relist(self, listed: Mapping[Key, T], uids: Mapping[Key, str], version: str) -> Iterator[tuple[Key, T | None]]:
        """Everything has been listed at this version; what to show of each object we wrote."""
        for key, own in list(self._own.items()):
            item = listed.get(key)
            if is_at_least(version, own.version) and not (own.is_deletion and uids.get(key) == own.uid):
                del self._own[key]
                yield key, item
            else:
                self._own[key] = msgspec.structs.replace(own, watched=item)
                yield key, own.shown

    def pass_version(self, version: str) -> list[tuple[Key, T | None]]:
        """Everything up to this version has been delivered: a write that old and not told of is not ours to see."""
        passed = [
            (key, own.watched)
            for key, own in self._own.items()
            if not own.is_deletion and is_at_least(version, own.version)
        ]
        for key, _ in passed:
            del self._own[key]
        return passed


def _is_told(own: Own[Any], is_deleted: bool, version: str, uid: str) -> bool:
    if own.is_deletion and uid == own.uid:
        return is_deleted
    return is_at_least(version, own.version)
