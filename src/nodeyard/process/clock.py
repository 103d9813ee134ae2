"""Clocks: system time, and virtual time for tests and simulation.

Code that sleeps or reads the time takes a `Clock`: the system clock in production. On a `VirtualClock` ten minutes
pass at once and always in the same order.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall-clock time in UTC, for timestamps on objects."""

    def monotonic(self) -> float:
        """Return monotonic seconds, for deadlines and durations."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualClock:
    """A clock that moves only by `advance`.

    Sleepers wake in the order of their deadlines. After each one the event loop runs until it is idle, so the effects
    of one sleeper are visible before the next wakes.
    """

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = start
        self._elapsed = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Advance the time and wake all sleepers that are due."""
        end = self._elapsed + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            deadline, _, woken = heapq.heappop(self._sleepers)
            if woken.done():
                continue
            self._elapsed = max(self._elapsed, deadline)
            woken.set_result(None)
            await settle()
        self._elapsed = end
        await settle()


async def settle(rounds: int = 50) -> None:
    """Let all ready tasks run, and the tasks that they wake."""
    for _ in range(rounds):
        await asyncio.sleep(0)
