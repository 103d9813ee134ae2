"""How long to wait after the n-th failure in a row: twice as long each time, up to a limit, and never in step with
others."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Backoff:
    first: float = 0.5
    most: float = 30.0

    def seconds(self, failures: int, random: Random, at_least: float = 0.0) -> float:
        """Between half and all of the full wait; `at_least` is what the server asked for."""
        full = min(self.most, self.first * 2.0 ** min(failures - 1, 30))
        return max(at_least, full * (0.5 + random.random() / 2))
