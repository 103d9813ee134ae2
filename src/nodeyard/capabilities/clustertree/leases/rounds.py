"""When the rounds of a leaf are: every ten seconds, each leaf at a moment of its own.

The moment follows from the leaf's name, so that the leases of many leaves are spread over the period instead of coming
in one burst, and so that a round that came early or late does not shift those after it.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

PERIOD_SECONDS: Final = 10.0
"""A quarter of a lease's duration, as the kubelet has it."""
REST_SECONDS: Final = 2.0
"""Between two rounds, at least."""

_STEPS: Final = 10_000


def offset(name: str) -> float:
    """Where in the period a leaf's rounds are."""
    return crc32(name.encode()) % _STEPS / _STEPS * PERIOD_SECONDS


def next_round(name: str, began: float) -> float:
    """When the round after one that began at `began` is due, by the same clock."""
    earliest = began + REST_SECONDS
    return earliest + (offset(name) - earliest) % PERIOD_SECONDS
