"""Time, as a thing one is given.

Everything that waits or asks the time takes a `Clock`. In production it is the system's; in tests and simulation it is
a `VirtualClock`, on which ten minutes pass in no time and always in the same order.
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
        """The wall clock, UTC: for timestamps on objects."""

    def monotonic(self) -> float:
        """Seconds that never go back: for deadlines and durations."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualClock:
    """A clock that stands still until `advance` moves it.

    Sleepers wake in the order of their deadlines, and after each the event loop runs until nothing is left to do at
    that moment, so that what one sleeper causes is seen before the next one wakes.
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
        """Let this much time pass, waking who sleeps meanwhile."""
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
    """Give every task that is ready a chance to run, and those that they wake."""
    for _ in range(rounds):
        await asyncio.sleep(0)


def rfc3339(moment: datetime) -> str:
    """`metav1.Time`: seconds, UTC."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(moment: datetime) -> str:
    """`metav1.MicroTime`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """Both of the above, and any RFC 3339 offset."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
