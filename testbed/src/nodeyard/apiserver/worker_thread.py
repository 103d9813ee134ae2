"""A worker thread for large requests.

Reading, merging and validating megabytes takes seconds in Python. In a thread it shares the interpreter with the event
loop, which goes on serving other requests. There is one thread: under the GIL more would not be faster. Values are
immutable and belong to one request; optimistic locking in the store detects objects that have changed meanwhile.

Two things would move the cost back to the loop:

- Freeing a million values takes long. `Work` keeps what the thread has made until the request is answered, and frees
  it in the thread.
- The garbage collector would traverse these values on the loop. It is disabled until they are freed.
"""

from __future__ import annotations

import asyncio
import gc
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from nodeyard.apiserver.cel.cost import Budget, CostlyError
from nodeyard.apiserver.transport import Request

LARGE = 64 * 1024
"""Bytes above which a body or stored object is handled in the thread: a smaller one takes about 20 ms."""
LARGE_YAML = 16 * 1024
"""The same for a body in YAML, which takes longer to read."""
BATCH = 256 * 1024
"""Bytes after which a loop over many objects yields to the event loop."""
STEP = 4 * 1024
"""Cost of an object in a batch beyond its own bytes."""

T = TypeVar("T")


def is_large_body(request: Request) -> bool:
    return len(request.body) > (LARGE_YAML if "yaml" in request.headers.get("content-type", "") else LARGE)


class WorkerThread:
    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._at_work = 0
        self._had_collector = True

    def work(self) -> Work:
        """Return the work of one request, a context manager around all of it."""
        return Work(self)

    def begin(self) -> ThreadPoolExecutor:
        """Start the thread and disable the garbage collector, until `end` has been called as often."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="apiserver-large")
        if self._at_work == 0:
            self._had_collector = gc.isenabled()
            gc.disable()
        self._at_work += 1
        return self._executor

    def end(self) -> None:
        if self._at_work == 0:  # has been closed
            return
        self._at_work -= 1
        if self._at_work == 0 and self._had_collector:
            gc.enable()

    def close(self) -> None:
        """Stop the thread; work that has not begun is dropped."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None
        self._at_work = min(self._at_work, 1)
        self.end()


class Work:
    """The work of one request in the thread, and its results."""

    __slots__ = ("_executor", "_made", "_trial", "_worker_thread")

    def __init__(self, worker_thread: WorkerThread, trial: Budget | None = None) -> None:
        self._worker_thread = worker_thread
        self._trial = trial or Budget.trial()
        self._executor: ThreadPoolExecutor | None = None
        self._made: list[object] = []

    async def run(self, is_large: bool, work: Callable[[], T]) -> T:
        """Do the work inline, or in the thread if it is large."""
        if not is_large:
            return work()
        if self._executor is None:
            self._executor = self._worker_thread.begin()
        made = await asyncio.get_running_loop().run_in_executor(self._executor, _clear_frames_on_error(work))
        self._made.append(made)
        return made

    async def evaluate(self, is_large: bool, work: Callable[[Budget | None], T]) -> T:
        """Do work that evaluates expressions: inline with a trial budget, in the thread if that is not enough.

        All such work of a request shares one trial budget. The work may be done twice, so it must have no side effects.
        """
        if not is_large and not self._trial.is_closed:
            try:
                return work(self._trial)
            except CostlyError:
                self._trial.is_closed = True
        return await self.run(True, lambda: work(None))

    def part(self) -> Work:
        """Return work for one of many objects of a request, whose results are freed earlier."""
        return Work(self._worker_thread, self._trial)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the results in the thread, once the request's own frames are gone."""
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
    """Call the function on the loop, or at once if the loop is closed."""
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        function()


def _clear_frames_on_error(work: Callable[[], T]) -> Callable[[], T]:
    """Wrap the work so that a failure clears the frames of its traceback in the thread."""

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
