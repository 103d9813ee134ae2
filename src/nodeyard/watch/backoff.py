"""Exponential backoff with jitter."""

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
