"""Workers: take keys from the workqueue, reconcile them, and requeue them as the result says.

Each reconcile is its own task, so that a lost lease can cancel it while the worker lives on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from random import Random
from typing import Any, Final

from nodeyard.process.aio import first_of
from nodeyard.process.backoff import Backoff, Failures
from nodeyard.process.clock import Clock
from nodeyard.runtime.capability import Key
from nodeyard.runtime.reconcile.result import RETRIED, Ending, ReconcileResult
from nodeyard.runtime.reconcile.workqueue import WorkQueue

# A conflict resolves as soon as the watch delivers the new version; a lasting failure is retried once a minute.
RETRY: Final = Backoff(first=0.1, most=60.0)
# A policy or webhook that denies a write may be fixed soon; a lasting denial is retried once a minute.
DENIED: Final = Backoff(first=1.0, most=60.0)


class Workers:
    def __init__(
        self, queue: WorkQueue, reconcile: Callable[[Key], Coroutine[Any, Any, ReconcileResult]], random: Random
    ) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._failures = Failures(RETRY, random)
        self._denials = Failures(DENIED, random)
        self._workers: list[asyncio.Task[None]] = []
        self._passes: dict[Key, asyncio.Task[ReconcileResult]] = {}

    def start(self, count: int) -> None:
        self._workers = [asyncio.create_task(self._work(), name=f"worker-{number}") for number in range(count)]

    @property
    def are_alive(self) -> bool:
        return not any(worker.done() for worker in self._workers)

    async def abort(self, key: Key | None = None) -> None:
        """Cancel the running passes, or that of one key, and wait for them; their keys are requeued."""
        running = [task for each, task in self._passes.items() if key is None or each == key]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def finish(self, key: Key, clock: Clock, grace: float) -> None:
        """Wait until no pass of this key runs; cancel it after `grace` seconds."""
        running = self._passes.get(key)
        if running is not None:
            await first_of(asyncio.wait({running}), clock.sleep(grace))
            await self.abort(key)

    async def stop(self, clock: Clock, grace: float) -> None:
        """Take no more keys; running passes may finish within `grace` seconds."""
        for worker in self._workers:
            worker.cancel()
        running = list(self._passes.values())
        if running:
            await first_of(asyncio.wait(running), clock.sleep(grace))
        await self.abort()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            key = await self._queue.take()
            task = self._passes[key] = asyncio.create_task(self._reconcile(key), name=f"reconcile {key}")
            task.add_done_callback(partial(self._end, key))
            await _wait_for(task)

    def _end(self, key: Key, task: asyncio.Task[ReconcileResult]) -> None:
        """Done callback of a pass. A task cancelled before its first step runs no code of its own."""
        has_failed = task.cancelled() or task.exception() is not None
        del self._passes[key]
        self._requeue(key, ReconcileResult(Ending.ERROR) if has_failed else task.result())
        self._queue.done(key)

    def _requeue(self, key: Key, result: ReconcileResult) -> None:
        if result.ending in RETRIED:
            self._queue.add_after(key, self._failures.wait(key, result.retry_after))
        else:
            self._failures.forget(key)
            if result.ending is not Ending.DENIED:
                self._denials.forget(key)
        if result.ending is Ending.DENIED:
            self._queue.add_after(key, self._denials.wait(key))
        if result.ending is Ending.GONE:
            self._queue.forget(key)
        if result.requeue_after is not None:
            self._queue.add_after(key, result.requeue_after)


async def _wait_for(task: asyncio.Task[ReconcileResult]) -> None:
    """Wait for the task, whatever its result. Cheaper than `asyncio.wait`, since it runs once per pass."""
    ended = asyncio.get_running_loop().create_future()

    def notify(_task: asyncio.Task[ReconcileResult]) -> None:
        if not ended.done():
            ended.set_result(None)

    task.add_done_callback(notify)
    await ended
