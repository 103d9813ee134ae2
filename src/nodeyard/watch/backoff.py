"""How long to wait after the n-th failure in a row: twice as long each time, up to a limit, and never in step with
others."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

LONGEST_ASKED: Final = 60.0
"""What a server asks for beyond this is not waited for: a page about its maintenance speaks of hours, and we would go
on from what was known before."""


@dataclass(frozen=True, slots=True)
class Backoff:
    first: float = 0.5
    most: float = 30.0

    def seconds(self, failures: int, random: Random, at_least: float = 0.0) -> float:
        """Between half and all of the full wait; `at_least` is what the server asked for, and gets within reason."""
        full = min(self.most, self.first * 2.0 ** min(failures - 1, 30))
        return max(min(at_least, LONGEST_ASKED), full * (0.5 + random.random() / 2))
