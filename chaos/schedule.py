"""A schedule of faults: drawn from a seed, printed, and carried out on the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final

from nodeyard.testing.faults import (
    DoubleEvents,
    Drop,
    Fault,
    HalfOpen,
    Latency,
    Status,
    TruncateEvents,
)

_NETWORK: Final[tuple[tuple[Fault, str, float], ...]] = (
    (Latency(0.4), "", 0.5),
    (Drop(), "", 0.3),
    (Drop(after_sending=True), "", 0.3),
    (HalfOpen(), "", 0.2),
    (HalfOpen(), "watch=true", 1.0),
    (Status(409), "PATCH", 0.5),
    (Status(410), "watch=true", 0.5),
    (Status(429, retry_after=1), "", 0.5),
    (Status(500), "", 0.5),
    (Status(503), "", 0.5),
    (TruncateEvents(), "watch=true", 0.3),
    (DoubleEvents(), "watch=true", 0.5),
)
"""Fault, the method or a pattern of the paths, and the chance of a request to be hit."""

_PAUSE_SECONDS: Final = 0.03
"""Between two changes."""


@dataclass(frozen=True)
class Step:
    """A fault that begins `at` seconds after the start and lasts for `seconds`."""

    at: float
    seconds: float
    name: str
    fault: Fault | None = None
    where: str = ""
    chance: float = 1.0

    def __str__(self) -> str:
        what = f"{self.fault} {self.where} {self.chance:.0%}" if self.fault else self.name
        return f"{self.at:5.1f} s  {what} for {self.seconds:.1f} s"


def draw(random: Random, seconds: float, processes: Iterable[str]) -> list[Step]:
    """Draw steps, one after the other: half of them network faults, half of them faults of processes."""
    names, steps, at = list(processes), list[Step](), random.uniform(0.5, 2)
    while at < seconds:
        length = random.uniform(0.5, 4)
        if random.random() < 0.5:
            fault, where, chance = random.choice(_NETWORK)
            steps.append(Step(at, length, "network", fault, where, chance))
        else:
            steps.append(Step(at, length, random.choice(names)))
        at += length + random.uniform(0.2, 2)
    return steps


def carry_out(steps: Iterable[Step], begin: Callable[[Step], Callable[[], None]], stir: Callable[[], None]) -> None:
    """Begin and end each step in time; call `stir` over and over meanwhile."""
    started = time.monotonic()

    def run_until(moment: float) -> None:
        while time.monotonic() < started + moment:
            stir()
            time.sleep(_PAUSE_SECONDS)

    for step in steps:
        run_until(step.at)
        end = begin(step)
        try:
            run_until(step.at + step.seconds)
        finally:
            end()
