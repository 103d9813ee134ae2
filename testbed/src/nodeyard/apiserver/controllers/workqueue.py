"""A work queue: each key is queued at most once, now or at a later time.

A key that is added while it is processed is processed again afterwards, so no event is lost and no key is processed
twice at once. Later keys wait in a heap, with one timer for the earliest.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Hashable
from typing import Generic, TypeVar

from nodeyard.process.clock import Clock

K = TypeVar("K", bound=Hashable)


class WorkQueue(Generic[K]):
    """The queue of one worker: `get` returns a key, which is processed until the next `get`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: dict[K, None] = {}
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = itertools.count()
        self._wake = asyncio.Event()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._is_busy = False
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = float("inf")

    def add(self, key: K) -> None:
        """Queue a key now."""
        self._due.pop(key, None)
        if key not in self._ready:
            self._ready[key] = None
            self._quiet.clear()
            self._wake.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Queue a key after this time, or earlier if it is queued for an earlier time."""
        if key in self._ready:
            return
        if seconds <= 0:
            self.add(key)
            return
        deadline = self._clock.monotonic() + seconds
        if deadline >= self._due.get(key, float("inf")):
            return
        self._due[key] = deadline
        heapq.heappush(self._heap, (deadline, next(self._order), key))
        self._set_alarm()

    def discard(self, key: K) -> None:
        """Remove a queued key."""
        self._ready.pop(key, None)
        self._due.pop(key, None)

    @property
    def is_idle(self) -> bool:
        """True if no key is due now; keys for later do not count."""
        return not self._ready and not self._is_busy

    async def quiet(self) -> None:
        """Wait until the queue is idle."""
        while not self.is_idle:
            await self._quiet.wait()

    async def get(self) -> K:
        self._is_busy = False
        while True:
            self._promote()
            if self._ready:
                key = next(iter(self._ready))
                del self._ready[key]
                self._is_busy = True
                self._quiet.clear()
                return key
            self._quiet.set()
            self._wake.clear()
            await self._wake.wait()

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._ready.clear()
        self._due.clear()
        self._heap.clear()
        self._is_busy = False
        self._quiet.set()

    def _promote(self) -> None:
        """Move due keys to the ready ones."""
        now = self._clock.monotonic()
        while self._heap and (self._heap[0][0] <= now or self._due.get(self._heap[0][2]) != self._heap[0][0]):
            deadline, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == deadline:
                del self._due[key]
                self._ready[key] = None
        self._set_alarm()

    def _set_alarm(self) -> None:
        deadline = self._heap[0][0] if self._heap else float("inf")
        if deadline >= self._alarm_at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = deadline
        self._alarm = asyncio.get_running_loop().create_task(self._ring(deadline))

    async def _ring(self, deadline: float) -> None:
        await self._clock.sleep(deadline - self._clock.monotonic())
        self._alarm, self._alarm_at = None, float("inf")
        self._promote()
        if self._ready:
            self._quiet.clear()
        self._wake.set()
