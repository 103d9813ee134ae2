"""Exponential backoff with jitter, and the consecutive failures per key that determine it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

LONGEST_ASKED: Final = 60.0
"""The longest Retry-After that is honoured, in seconds. A maintenance page may ask for hours, during which the operator
would work from a stale cache."""


@dataclass(frozen=True, slots=True)
class Backoff:
    first: float = 0.5
    most: float = 30.0

    def seconds(self, failures: int, random: Random, at_least: float = 0.0) -> float:
        """Return the delay after the n-th consecutive failure, with a jitter of up to half.

        `at_least` is the server's Retry-After, honoured up to LONGEST_ASKED.
        """
        full = min(self.most, self.first * 2.0 ** min(failures - 1, 30))
        return max(min(at_least, LONGEST_ASKED), full * (0.5 + random.random() / 2))


class Failures:
    """Consecutive failures, counted per key."""

    def __init__(self, backoff: Backoff, random: Random) -> None:
        self._backoff = backoff
        self._random = random
        self._counts: dict[str, int] = {}

    def count(self, key: str) -> int:
        return self._counts.get(key, 0)

    def wait(self, key: str, at_least: float = 0.0) -> float:
        """Count one more failure and return the seconds until the next try. `at_least` is the server's Retry-After."""
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return self._backoff.seconds(count, self._random, at_least)

    def forget(self, key: str) -> None:
        self._counts.pop(key, None)
