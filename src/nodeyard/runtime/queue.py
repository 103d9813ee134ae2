"""Which keys are to be planned, and when.

    queue.add(key)                  an event: planned once, when the window that its first event opened closes
    queue.add(key, calm=1)          the same, but not sooner than that many seconds after it was last taken for such
    queue.add_after(key, seconds)   a retry, a wake-up: the earliest moment asked for wins
    key = await queue.take()        whoever takes a key has it alone ...
    queue.done(key)                 ... until it says so; what came meanwhile makes it due again

Fresh events go before resyncs. Everything runs on one event loop; adding costs a heap push, and now and then a pass
over all keys that wait.
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
_FEW: Final = 64
"""Entries of the heap that may be out of date however few keys wait."""


class Priority(IntEnum):
    """Lower goes first."""

    FRESH = 0
    RESYNC = 1


@dataclass(slots=True)
class _Wish:
    """That a key be planned: from when on, and how urgently."""

    at: float
    priority: Priority
    is_calm: bool = False
    """Whether an event is among what it is for of which there may be many."""


class Queue:
    def __init__(
        self, clock: Clock, *, window: float = WINDOW_SECONDS, on_take: Callable[[float], None] | None = None
    ) -> None:
        """`on_take` is told how long a key was due before somebody took it."""
        self._clock = clock
        self._window = window
        self._on_take = on_take
        self._order = itertools.count()
        self._wishes: dict[Key, _Wish] = {}
        self._later: list[tuple[float, int, Key]] = []
        self._ready: list[tuple[Priority, int, Key]] = []
        self._working: set[Key] = set()
        self._calmed: dict[Key, float] = {}
        """When keys were last taken that have such events."""
        self._takers: deque[asyncio.Future[None]] = deque()
        self._timer: tuple[float, asyncio.Task[None]] | None = None
        self._is_closed = False

    # asking

    def add(self, key: Key, priority: Priority = Priority.FRESH, *, calm: float = 0.0) -> None:
        """Something happened to the key. Events of one window are planned together."""
        now = self._clock.monotonic()
        at = now + self._window
        if calm:
            at = max(at, self._calmed.get(key, now - calm) + calm)
        self._wish(key, at, priority)
        wish = self._wishes.get(key)
        if calm and wish is not None:
            wish.is_calm = True

    def forget(self, key: Key) -> None:
        """What the key named is gone."""
        self._calmed.pop(key, None)

    def add_after(self, key: Key, seconds: float, priority: Priority = Priority.FRESH) -> None:
        self._wish(key, self._clock.monotonic() + max(seconds, 0.0), priority)

    @property
    def depth(self) -> int:
        """Keys that are due and that nobody has taken. May be asked on another thread, as metrics are."""
        now = self._clock.monotonic()
        return sum(wish.at <= now for wish in tuple(self._wishes.values()))

    @property
    def waiting(self) -> int:
        """Keys that are due or will be."""
        return len(self._wishes)

    @property
    def is_idle(self) -> bool:
        """Nothing is being worked on."""
        return not self._working

    # working

    async def take(self) -> Key:
        while True:
            key = self._pop()
            if key is not None:
                return key
            taker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._takers.append(taker)
            try:
                await taker
            except asyncio.CancelledError:
                # It may have been woken for a key that another taker has to see now.
                if taker.done() and not taker.cancelled():
                    self._wake()
                raise

    def done(self, key: Key) -> None:
        self._working.discard(key)
        wish = self._wishes.get(key)
        if wish is not None:
            self._schedule(key, wish)

    async def close(self) -> None:
        """Nobody takes any more: stop the timer, and begin none."""
        self._is_closed = True
        timer, self._timer = self._timer, None
        if timer is not None:
            timer[1].cancel()
            await asyncio.gather(timer[1], return_exceptions=True)

    # inside

    def _wish(self, key: Key, at: float, priority: Priority) -> None:
        if self._is_closed:
            return
        wish = self._wishes.get(key)
        if wish is None:
            wish = self._wishes[key] = _Wish(at, priority)
        elif at >= wish.at and priority >= wish.priority:
            return
        else:
            wish.at, wish.priority = min(at, wish.at), min(priority, wish.priority)
        if key not in self._working:
            self._schedule(key, wish)

    def _schedule(self, key: Key, wish: _Wish) -> None:
        now = self._clock.monotonic()
        if wish.at <= now:
            self._promote(key, wish)
            return
        heapq.heappush(self._later, (wish.at, next(self._order), key))
        if len(self._later) > 2 * len(self._wishes) + _FEW:
            self._tidy(now)
        self._arm()

    def _promote(self, key: Key, wish: _Wish) -> None:
        heapq.heappush(self._ready, (wish.priority, next(self._order), key))
        self._wake()

    def _pop(self) -> Key | None:
        """The next key that is due; entries of the heap that a later wish or a worker has overtaken fall out."""
        now = self._clock.monotonic()
        self._ripen(now)
        while self._ready:
            priority, _, key = heapq.heappop(self._ready)
            wish = self._wishes.get(key)
            if wish is None or key in self._working or wish.at > now or wish.priority != priority:
                continue
            del self._wishes[key]
            self._working.add(key)
            if wish.is_calm:
                self._calmed[key] = now
            if self._on_take is not None:
                self._on_take(now - wish.at)
            return key
        return None

    def _ripen(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            at, _, key = heapq.heappop(self._later)
            wish = self._wishes.get(key)
            if wish is not None and wish.at == at and key not in self._working:
                self._promote(key, wish)

    def _tidy(self, now: float) -> None:
        """Entries that were overtaken would else stay until their own time, which may be far."""
        self._ripen(now)
        waiting = ((wish.at, key) for key, wish in self._wishes.items() if wish.at > now and key not in self._working)
        self._later = [(at, next(self._order), key) for at, key in waiting]
        heapq.heapify(self._later)

    def _wake(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return

    def _arm(self) -> None:
        """One timer, for the earliest moment."""
        at = self._later[0][0]
        if self._timer is not None:
            if self._timer[0] <= at and not self._timer[1].done():
                return
            self._timer[1].cancel()
        self._timer = (at, asyncio.create_task(self._ring(at), name="queue-timer"))

    async def _ring(self, at: float) -> None:
        while True:
            await self._clock.sleep(at - self._clock.monotonic())
            self._ripen(self._clock.monotonic())
            if not self._later:
                self._timer = None
                return
            at = self._later[0][0]
            task = asyncio.current_task()
            if task is not None:
                self._timer = (at, task)
