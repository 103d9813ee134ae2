"""Where planners run. They are pure, so it does not matter to them; it matters to everyone else.

In production each capability has one worker thread: a slow plan delays neither the watches nor another capability's
plans. In simulation they run in place, so that virtual time stands still meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")


class Thinker(Protocol):
    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...

    def close(self) -> None: ...


class InThread:
    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"plan-{name}")

    async def __call__(self, work: Callable[[], T], /) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Does not wait for a plan nobody will read."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class InPlace:
    def __init__(self, _name: str = "") -> None:
        """Takes a name as InThread does."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        return work()

    def close(self) -> None:
        """Nothing is open."""
