"""Backoff per key: consecutive failures, and the wait that follows from them."""

from __future__ import annotations

from random import Random
from typing import Final

from nodeyard.runtime.capability import Key
from nodeyard.watch.backoff import Backoff

# A conflict resolves as soon as the watch delivers the new version; a lasting failure is retried once a minute.
RETRY: Final = Backoff(first=0.1, most=60.0)
# A policy or webhook that denies a write may be fixed soon; a lasting denial is retried once a minute.
DENIED: Final = Backoff(first=1.0, most=60.0)


class Failures:
    """Consecutive failures, counted per key."""

    def __init__(self, random: Random, backoff: Backoff = RETRY) -> None:
        self._random = random
        self._backoff = backoff
        self._counts: dict[Key, int] = {}

    def with_backoff(self, backoff: Backoff) -> Failures:
        """Return a separate counter with another backoff."""
        return Failures(self._random, backoff)

    def count(self, key: Key) -> int:
        return self._counts.get(key, 0)

    def wait(self, key: Key, at_least: float = 0.0) -> float:
        """Count one more failure and return the seconds until the next try. `at_least` is the server's Retry-After."""
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return self._backoff.seconds(count, self._random, at_least)

    def forget(self, key: Key) -> None:
        self._counts.pop(key, None)
