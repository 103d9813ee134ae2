"""The workqueue: which keys to reconcile, and when.

    queue.add(key)                  an event; events within one debounce window (50 ms) cause one reconcile
    queue.add(key, min_interval=1)  the same, but not sooner than that after the key was last taken for such an event
    queue.add_after(key, seconds)   a retry or a wake-up; the earliest time wins
    key = await queue.take()        the caller owns the key exclusively ...
    queue.done(key)                 ... until it says so; events in between requeue the key

Fresh events go before resyncs. All calls run on one event loop. Adding costs a heap push, and now and then a pass over
all waiting keys.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from nodeyard.process.clock import Clock
from nodeyard.runtime.capability import Key

WINDOW_SECONDS: Final = 0.05
_STALE_ENTRIES_MIN: Final = 64
"""Stale heap entries that are tolerated however few keys wait."""


class Priority(IntEnum):
    """Lower values go first."""

    FRESH = 0
    RESYNC = 1


@dataclass(slots=True)
class _Entry:
    """A queued key: from when it is ready, and its priority."""

    at: float
    priority: Priority
    is_throttled: bool = False
    """True if one of its events has a `min_interval`."""


class WorkQueue:
    def __init__(
        self, clock: Clock, *, window: float = WINDOW_SECONDS, on_take: Callable[[float], None] | None = None
    ) -> None:
        """`on_take` is called with the seconds that a ready key waited."""
        self._clock = clock
        self._window = window
        self._on_take = on_take
        self._order = itertools.count()
        self._entries: dict[Key, _Entry] = {}
        self._delayed: list[tuple[float, int, Key]] = []
        self._ready: list[tuple[Priority, int, Key]] = []
        self._working: set[Key] = set()
        self._throttled_at: dict[Key, float] = {}
        """When each key was last taken for an event with a `min_interval`."""
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._timer: tuple[float, asyncio.Task[None]] | None = None
        self._is_closed = False

    # adding

    def add(self, key: Key, priority: Priority = Priority.FRESH, *, min_interval: float = 0.0) -> None:
        """Queue the key for an event. Events within one window cause one reconcile."""
        now = self._clock.monotonic()
        at = now + self._window
        if min_interval:
            at = max(at, self._throttled_at.get(key, now - min_interval) + min_interval)
        self._put(key, at, priority)
        entry = self._entries.get(key)
        if min_interval and entry is not None:
            entry.is_throttled = True

    def forget(self, key: Key) -> None:
        """Forget a key whose objects no longer exist."""
        self._throttled_at.pop(key, None)

    def add_after(self, key: Key, seconds: float, priority: Priority = Priority.FRESH) -> None:
        self._put(key, self._clock.monotonic() + max(seconds, 0.0), priority)

    @property
    def depth(self) -> int:
        """Number of ready keys that no worker has taken. Safe on another thread, for metrics."""
        now = self._clock.monotonic()
        return sum(entry.at <= now for entry in tuple(self._entries.values()))

    @property
    def waiting(self) -> int:
        """Number of ready and delayed keys."""
        return len(self._entries)

    @property
    def is_idle(self) -> bool:
        """True while no key is being reconciled."""
        return not self._working

    # working

    async def take(self) -> Key:
        while True:
            key = self._pop()
            if key is not None:
                return key
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # This waiter may have been woken for a key that another waiter has to take now.
                if waiter.done() and not waiter.cancelled():
                    self._wake()
                raise

    def done(self, key: Key) -> None:
        self._working.discard(key)
        entry = self._entries.get(key)
        if entry is not None:
            self._schedule(key, entry)

    async def close(self) -> None:
        """Close the queue: stop the timer and start no other."""
        self._is_closed = True
        timer, self._timer = self._timer, None
        if timer is not None:
            timer[1].cancel()
            await asyncio.gather(timer[1], return_exceptions=True)

    # internals

    def _put(self, key: Key, at: float, priority: Priority) -> None:
        if self._is_closed:
            return
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(at, priority)
        elif at >= entry.at and priority >= entry.priority:
            return
        else:
            entry.at, entry.priority = min(at, entry.at), min(priority, entry.priority)
        if key not in self._working:
            self._schedule(key, entry)

    def _schedule(self, key: Key, entry: _Entry) -> None:
        now = self._clock.monotonic()
        if entry.at <= now:
            self._promote(key, entry)
            return
        heapq.heappush(self._delayed, (entry.at, next(self._order), key))
        if len(self._delayed) > 2 * len(self._entries) + _STALE_ENTRIES_MIN:
            self._compact(now)
        self._set_timer()

    def _promote(self, key: Key, entry: _Entry) -> None:
        heapq.heappush(self._ready, (entry.priority, next(self._order), key))
        self._wake()

    def _pop(self) -> Key | None:
        """Return the next ready key. Heap entries that a later add or a worker made stale are skipped."""
        now = self._clock.monotonic()
        self._promote_due(now)
        while self._ready:
            priority, _, key = heapq.heappop(self._ready)
            entry = self._entries.get(key)
            if entry is None or key in self._working or entry.at > now or entry.priority != priority:
                continue
            del self._entries[key]
            self._working.add(key)
            if entry.is_throttled:
                self._throttled_at[key] = now
            if self._on_take is not None:
                self._on_take(now - entry.at)
            return key
        return None

    def _promote_due(self, now: float) -> None:
        while self._delayed and self._delayed[0][0] <= now:
            at, _, key = heapq.heappop(self._delayed)
            entry = self._entries.get(key)
            if entry is not None and entry.at == at and key not in self._working:
                self._promote(key, entry)

    def _compact(self, now: float) -> None:
        """Rebuild the heap without stale entries, which would otherwise stay until their own time."""
        self._promote_due(now)
        waiting = (
            (entry.at, key) for key, entry in self._entries.items() if entry.at > now and key not in self._working
        )
        self._delayed = [(at, next(self._order), key) for at, key in waiting]
        heapq.heapify(self._delayed)

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _set_timer(self) -> None:
        """Keep one timer, for the earliest delayed key."""
        at = self._delayed[0][0]
        if self._timer is not None:
            if self._timer[0] <= at and not self._timer[1].done():
                return
            self._timer[1].cancel()
        self._timer = (at, asyncio.create_task(self._run_timer(at), name="queue-timer"))

    async def _run_timer(self, at: float) -> None:
        while True:
            await self._clock.sleep(at - self._clock.monotonic())
            self._promote_due(self._clock.monotonic())
            if not self._delayed:
                self._timer = None
                return
            at = self._delayed[0][0]
            task = asyncio.current_task()
            if task is not None:
                self._timer = (at, task)
