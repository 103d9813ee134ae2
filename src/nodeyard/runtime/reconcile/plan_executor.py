"""Planner threads: planners are pure, so they run off the event loop.

In production each capability has one worker thread: a slow plan delays neither watches nor another capability's plans.
A thread hop costs as much as a small plan, so work is batched: the thread takes whatever was queued while it was busy,
and finished plans return to the event loop together. Keys that are always small are planned inline
(`Capability.plans_inline`). In simulation all plans run inline, so that virtual time stands still meanwhile.
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


class PlanExecutor(Protocol):
    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...

    @property
    def busy_for(self) -> float:
        """Seconds since the running plan was started; 0 while idle."""

    def close(self) -> None: ...


class ThreadPlanExecutor:
    def __init__(self, name: str, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"plan-{name}")
        self._tasks: deque[_Task] = deque()
        """Tasks not started yet."""
        self._is_scheduled = False
        """True if the thread will check for more tasks."""
        self._done: deque[_Done] = deque()
        """Results that the event loop has not delivered yet."""
        self._is_delivering = False
        """True if a delivery is scheduled on the event loop."""
        self._began: float | None = None

    async def __call__(self, work: Callable[[], T], /) -> T:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._tasks.append((answer, work))
        if not self._is_scheduled:
            self._submit(loop)
        return await answer

    @property
    def busy_for(self) -> float:
        began = self._began
        return 0.0 if began is None else self._clock.monotonic() - began

    def close(self) -> None:
        """Shut down without waiting for the running plan, and cancel the tasks that will not start."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._is_scheduled = False
        for answer, _ in self._pop_all():
            answer.cancel()

    def _submit(self, loop: asyncio.AbstractEventLoop) -> None:
        self._is_scheduled = True
        try:
            self._executor.submit(self._run_tasks, loop)
        except RuntimeError:
            # The executor was shut down.
            self.close()

    def _run_tasks(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run tasks one after another until none is left; in the worker thread."""
        while True:
            for answer, work in self._pop_all():
                self._run_task(loop, answer, work)
            # Cleared before the last check: a task added from here on submits again, and one submit too many is
            # harmless.
            self._is_scheduled = False
            if not self._tasks:
                return
            self._is_scheduled = True

    def _pop_all(self) -> Iterator[_Task]:
        """Pop all tasks; safe if two threads do so at once."""
        with contextlib.suppress(IndexError):
            while True:
                yield self._tasks.popleft()

    def _run_task(self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any], work: Callable[[], Any]) -> None:
        if answer.cancelled():
            return
        self._began = self._clock.monotonic()
        try:
            self._done.append((answer, work(), None))
        except BaseException as error:
            self._done.append((answer, None, error))
        self._began = None
        if not self._is_delivering:
            self._is_delivering = True
            loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        # Cleared before the check: a result from here on schedules another delivery, and one too many is harmless.
        self._is_delivering = False
        while self._done:
            answer, result, error = self._done.popleft()
            if answer.done():
                continue
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)


class InlinePlanExecutor:
    busy_for = 0.0
    """Nothing can ask while a plan runs inline."""

    def __init__(self, _name: str = "") -> None:
        """Accepts a name like ThreadPlanExecutor."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        return work()

    def close(self) -> None:
        """Nothing is open."""
