"""Where planners run. They are pure, so it does not matter to them; it matters to everyone else.

In production each capability has one worker thread: a slow plan delays neither the watches nor another capability's
plans. What the event loop hands over in one of its turns goes there together, and what is done by the time it looks
comes back together, since the way costs as much as a small plan does. In simulation they run in place, so that virtual
time stands still meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeAlias, TypeVar

T = TypeVar("T")
_Task: TypeAlias = tuple[asyncio.Future[Any], Callable[[], Any]]
_Done: TypeAlias = tuple[asyncio.Future[Any], Any, BaseException | None]


class Thinker(Protocol):
    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...

    def close(self) -> None: ...


class InThread:
    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"plan-{name}")
        self._pending: list[_Task] = []
        """Handed over in this turn of the event loop."""
        self._done: deque[_Done] = deque()
        """Answers that the event loop has not fetched yet."""
        self._is_called = False
        """Whether it will."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        if not self._pending:
            loop.call_soon(self._hand_over, loop)
        self._pending.append((answer, work))
        return await answer

    def close(self) -> None:
        """Does not wait for a plan nobody will read."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _hand_over(self, loop: asyncio.AbstractEventLoop) -> None:
        tasks, self._pending = self._pending, []
        try:
            self._executor.submit(self._think, loop, tasks)
        except RuntimeError:
            # It was closed meanwhile: whoever waits is not to wait for ever.
            for answer, _ in tasks:
                answer.cancel()

    def _think(self, loop: asyncio.AbstractEventLoop, tasks: Sequence[_Task]) -> None:
        """In the worker thread: one after another."""
        for answer, work in tasks:
            if answer.cancelled():
                continue
            try:
                self._done.append((answer, work(), None))
            except BaseException as error:
                self._done.append((answer, None, error))
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
    def __init__(self, _name: str = "") -> None:
        """Takes a name as InThread does."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        return work()

    def close(self) -> None:
        """Nothing is open."""
