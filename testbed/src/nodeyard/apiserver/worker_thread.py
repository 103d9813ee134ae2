"""Work on large requests, in one thread beside the event loop.

Reading, merging and validating megabytes takes seconds in Python. In a thread it shares the interpreter with the loop,
which goes on serving everybody else. There is one thread: under the GIL more of them would not be faster, and large
requests wait for each other rather than for their turn at the interpreter. Values are persistent and belong to one
request; optimistic locking in the store notices an object that has changed meanwhile.

Two things would bring the cost back to the loop:

- Freeing a million values takes a while too. `Work` keeps what the thread has made until the request is answered, and
  has it freed in the thread.
- The garbage collector would look through those values on the loop's time, and none of them is garbage. It rests until
  they are freed.
"""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from nodeyard.apiserver.cel.cost import Budget, CostlyError

LARGE = 64 * 1024
"""Bytes of a body or of a stored object from which on it is worked on beside the loop: less takes 20 ms at worst."""
BATCH = 256 * 1024
"""Bytes after which a loop over many objects lets others have their turn."""
STEP = 4 * 1024
"""What an object counts in a batch beside its own bytes."""

T = TypeVar("T")


class WorkerThread:
    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._at_work = 0
        self._had_collector = True

    def work(self) -> Work:
        """For one request, as a context manager around all of it."""
        return Work(self)

    def begin(self) -> ThreadPoolExecutor:
        """Have the thread, and the collector rest, until `end` was called as often."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apiserver-large")
        if self._at_work == 0:
            self._had_collector = gc.isenabled()
            gc.disable()
        self._at_work += 1
        return self._executor

    def end(self) -> None:
        if self._at_work == 0:  # closed meanwhile
            return
        self._at_work -= 1
        if self._at_work == 0 and self._had_collector:
            gc.enable()

    def close(self) -> None:
        """Let go of the thread; work that has not begun is dropped."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None
        self._at_work = min(self._at_work, 1)
        self.end()


class Work:
    """What one request has worked on beside the loop, and what that has made."""

    __slots__ = ("_executor", "_made", "_trial", "_worker_thread")

    def __init__(self, worker_thread: WorkerThread, trial: Budget | None = None) -> None:
        self._worker_thread = worker_thread
        self._trial = trial or Budget.trial()
        self._executor: ThreadPoolExecutor | None = None
        self._made: list[object] = []

    async def run(self, is_large: bool, work: Callable[[], T]) -> T:
        """Do the work at once, or where it is large beside the loop."""
        if not is_large:
            return work()
        if self._executor is None:
            self._executor = self._worker_thread.begin()
        made = await asyncio.get_running_loop().run_in_executor(self._executor, _tidy(work))
        self._made.append(made)
        return made

    async def evaluate(self, is_large: bool, work: Callable[[Budget | None], T]) -> T:
        """Do work that evaluates expressions: at once with a trial budget, off the loop if that is not enough.

        All such work of a request shares one trial budget. The work may be done twice, so it must have no side effects.
        """
        if not is_large and not self._trial.is_closed:
            try:
                return work(self._trial)
            except CostlyError:
                self._trial.is_closed = True
        return await self.run(True, lambda: work(None))

    def part(self) -> Work:
        """For one of many objects of a request, so that not all of them are kept to its end."""
        return Work(self._worker_thread, self._trial)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Have everything freed that the thread has made, once the request's own frames are gone."""
        if self._executor is not None:
            asyncio.get_running_loop().call_soon(self._free)

    def _free(self) -> None:
        assert self._executor is not None
        try:
            freed = self._executor.submit(self._made.clear)
        except RuntimeError:  # the server has stopped
            self._worker_thread.end()
            return
        loop = asyncio.get_running_loop()
        freed.add_done_callback(lambda _: _call(loop, self._worker_thread.end))


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call it on the loop, or at once where there is none any more."""
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        function()


def _tidy(work: Callable[[], T]) -> Callable[[], T]:
    """The same work; where it fails, the frames in the traceback let go of their values in the thread."""

    def run() -> T:
        try:
            return work()
        except Exception as error:
            fault: BaseException | None = error
            while fault is not None:
                traceback.clear_frames(fault.__traceback__)
                fault = fault.__cause__ or fault.__context__
            raise

    return run
