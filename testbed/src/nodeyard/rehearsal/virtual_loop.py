"""An event loop in virtual time: when nothing is runnable, its time jumps to the next timer.

    run(main(), start)      the whole program under virtual time; `asyncio.sleep(3600)` takes no time

The loop never waits for the outside: work for other threads runs inline, and sockets are not polled. So the order of
all callbacks depends only on the program. If neither a callback nor a timer is left, the program can never go on, and
`Stalled` is raised.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")


class Stalled(RuntimeError):
    """Every task waits for something that cannot happen."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.elapsed = 0.0
        super().__init__(_TimeSelector(self))

    def time(self) -> float:
        return self.elapsed

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Call the function at once: virtual time stands still meanwhile."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


class _TimeSelector(selectors.DefaultSelector):
    """Instead of waiting for I/O until the next timer, advance the time of the loop to it."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Stalled("nothing is left that could happen")
        if timeout > 0:
            self._loop.elapsed += timeout
        return []


class LoopClock:
    """The clock of the running VirtualTimeLoop."""

    def __init__(self, start: datetime, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._start = start
        self._loop = loop or asyncio.get_running_loop()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
