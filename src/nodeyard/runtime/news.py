"""What has happened to a key that the plan being sent does not know of, so that a newer plan can replace its rest.

A change of an object that the plan itself writes is no news: as often as not it is that write, told by the watch before
the server's answer has come; and where it is another's, the write's precondition finds it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Key

Subject: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""


class News:
    def __init__(self) -> None:
        self._written: dict[Key, set[Subject]] = {}
        self._fresh: set[Key] = set()

    @contextmanager
    def following(self, key: Key) -> Iterator[None]:
        """For as long as a pass takes, from before it looks at the cache."""
        self._written[key] = set()
        try:
            yield
        finally:
            del self._written[key]
            self._fresh.discard(key)

    def writes(self, key: Key, refs: Iterable[ObjectRef]) -> None:
        """What the plan of the key is about to write."""
        self._written[key] = {(ref.kind, ref.namespace, ref.name) for ref in refs}

    def changed(self, key: Key, subject: Subject) -> None:
        written = self._written.get(key)
        if written is not None and subject not in written:
            self._fresh.add(key)

    def has(self, key: Key) -> bool:
        return key in self._fresh
