"""How long expressions may run.

The API server counts a cost and stops an expression at 1,000,000, and all rules of an object together at ten times
that. Here every node of a loop's body is counted whether it is evaluated or not, so the same work counts for more and
is given more.
"""

from __future__ import annotations

PER_EXPRESSION = 4_000_000
PER_OBJECT = 10 * PER_EXPRESSION


class Budget:
    """What is left for one object. Once it is closed, nothing more is evaluated."""

    def __init__(self, remaining: int = PER_OBJECT) -> None:
        self.remaining = remaining
        self.is_closed = False

    @property
    def is_spent(self) -> bool:
        return self.remaining <= 0
