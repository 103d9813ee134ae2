"""Where planners run. They are pure, so it does not matter to them; it matters to everyone else.

In production each capability has one worker thread: a slow plan delays neither the watches nor another capability's
plans. The way there and back costs as much as a small plan does: what is handed over while the thread is at work is
taken up by it without being called, and what is done by the time the event loop looks comes back together. Keys that
are always small do not go there at all (`Capability.is_small`). In simulation all run in place, so that virtual time
stands still meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeAlias, TypeVar

from nodeyard.process.clock import Clock, SystemClock

T = TypeVar("T")
_Task: TypeAlias = tuple[asyncio.Future[Any], Callable[[], Any]]
_Done: TypeAlias = tuple[asyncio.Future[Any], Any, BaseException | None]


class Thinker(Protocol):
    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...

    @property
    def busy_for(self) -> float:
        """Seconds since what is being thought about was begun; none where nothing is."""

    def close(self) -> None: ...


class InThread:
    def __init__(self, name: str, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"plan-{name}")
        self._tasks: deque[_Task] = deque()
        """Handed over, and not begun."""
        self._is_thinking = False
        """Whether the thread will look for more."""
        self._done: deque[_Done] = deque()
        """Answers that the event loop has not fetched yet."""
        self._is_called = False
        """Whether it will."""
        self._began: float | None = None

    async def __call__(self, work: Callable[[], T], /) -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._tasks.append((answer, work))
        if not self._is_thinking:
            self._call_thread(loop)
        return await answer

    @property
    def busy_for(self) -> float:
        began = self._began
        return 0.0 if began is None else self._clock.monotonic() - began

    def close(self) -> None:
        """Does not wait for a plan nobody will read, nor has anybody wait for one that nobody makes."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._is_thinking = False
        for answer, _ in self._taken():
            answer.cancel()

    def _call_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_thinking = True
        try:
            self._executor.submit(self._think, loop)
        except RuntimeError:
            # It was closed.
            self.close()

    def _think(self, loop: asyncio.AbstractEventLoop) -> None:
        """In the worker thread: one after another, until there is nothing left."""
        while True:
            for answer, work in self._taken():
                self._do(loop, answer, work)
            # Before looking a last time: who hands over from here on calls, and once too often does no harm.
            self._is_thinking = False
            if not self._tasks:
                return
            self._is_thinking = True

    def _taken(self) -> Iterator[_Task]:
        """All there are, each to whoever asks first."""
        with contextlib.suppress(IndexError):
            while True:
                yield self._tasks.popleft()

    def _do(self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any], work: Callable[[], Any]) -> None:
        if answer.cancelled():
            return
        self._began = self._clock.monotonic()
        try:
            self._done.append((answer, work(), None))
        except BaseException as error:
            self._done.append((answer, None, error))
        self._began = None
        if not self._is_called:
            self._is_called = True
            loop.call_soon_threadsafe(self._fetch)

    def _fetch(self) -> None:
        # Before looking: what is done from here on calls again, and once too often does no harm.
        self._is_called = False
        while self._done:
            answer, result, error = self._done.popleft()
            if answer.done():
                continue
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)


class InPlace:
    busy_for = 0.0
    """Whoever could ask waits for it too."""

    def __init__(self, _name: str = "") -> None:
        """Takes a name as InThread does."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        return work()

    def close(self) -> None:
        """Nothing is open."""
