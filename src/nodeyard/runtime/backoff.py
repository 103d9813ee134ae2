"""How often each key has failed in a row, and how long it therefore waits."""

from __future__ import annotations

from random import Random
from typing import Final

from nodeyard.runtime.capability import Key
from nodeyard.watch.backoff import Backoff

# A conflict is over as soon as the watch has told of it; what stays broken is asked about once a minute.
RETRY: Final = Backoff(first=0.1, most=60.0)


class Failures:
    """Keys fail and recover each for themselves."""

    def __init__(self, random: Random, backoff: Backoff = RETRY) -> None:
        self._random = random
        self._backoff = backoff
        self._counts: dict[Key, int] = {}

    def count(self, key: Key) -> int:
        return self._counts.get(key, 0)

    def wait(self, key: Key, at_least: float = 0.0) -> float:
        """One more failure: the seconds until the next try; `at_least` is what the server asked for."""
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return self._backoff.seconds(count, self._random, at_least)

    def forget(self, key: Key) -> None:
        self._counts.pop(key, None)
