"""Planner threads: planners are pure, so they run off the event loop.

In production each capability has one worker thread: a slow plan delays neither watches nor another capability's plans.
The two thread hops of a pass cost about 0.05 ms of CPU, a twentieth of a pass that writes; keys whose plan is about as
cheap are planned inline (`Capability.plans_inline`). In simulation all plans run inline, so that virtual time
stands still meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from nodeyard.process.clock import Clock, SystemClock

T = TypeVar("T")


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
        self._began: float | None = None

    async def __call__(self, work: Callable[[], T], /) -> T:
        try:
            running = asyncio.get_running_loop().run_in_executor(self._executor, self._run, work)
        except RuntimeError:
            # The executor was shut down.
            raise asyncio.CancelledError from None
        return await running

    @property
    def busy_for(self) -> float:
        began = self._began
        return 0.0 if began is None else self._clock.monotonic() - began

    def close(self) -> None:
        """Shut down without waiting for the running plan, and cancel the plans that have not started."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _run(self, work: Callable[[], T]) -> T:
        self._began = self._clock.monotonic()
        try:
            return work()
        finally:
            self._began = None


class InlinePlanExecutor:
    busy_for = 0.0
    """Nothing can ask while a plan runs inline."""

    def __init__(self, _name: str = "") -> None:
        """Accepts a name like ThreadPlanExecutor."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        return work()

    def close(self) -> None:
        """Nothing is open."""
