"""Takes keys from the queue, has each reconciled, and puts it back for when its verdict says.

Each pass is a task of its own, so that losing the lease can end it at once and the worker lives on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from nodeyard.process.clock import Clock
from nodeyard.runtime.backoff import Failures
from nodeyard.runtime.capability import Key
from nodeyard.runtime.leader import first_of
from nodeyard.runtime.queue import Queue
from nodeyard.runtime.verdict import RETRIED, Ending, Verdict


class Workers:
    def __init__(
        self, queue: Queue, reconcile: Callable[[Key], Coroutine[Any, Any, Verdict]], failures: Failures
    ) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._failures = failures
        self._workers: list[asyncio.Task[None]] = []
        self._passes: dict[Key, asyncio.Task[Verdict]] = {}

    def start(self, count: int) -> None:
        self._workers = [asyncio.create_task(self._work(), name=f"worker-{number}") for number in range(count)]

    @property
    def are_alive(self) -> bool:
        return not any(worker.done() for worker in self._workers)

    async def abort(self, key: Key | None = None) -> None:
        """End the passes that run now, or that of one key, and wait until they have ended; their keys are due again."""
        running = [task for each, task in self._passes.items() if key is None or each == key]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def finish(self, key: Key, clock: Clock, grace: float) -> None:
        """Until no pass of this key runs; one that takes longer than `grace` seconds is ended."""
        running = self._passes.get(key)
        if running is not None:
            await first_of(asyncio.wait({running}), clock.sleep(grace))
            await self.abort(key)

    async def stop(self, clock: Clock, grace: float) -> None:
        """Take nothing more; what is in flight may finish within `grace` seconds."""
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
            await _ended(task)

    def _end(self, key: Key, task: asyncio.Task[Verdict]) -> None:
        """Told by the task, however it ended: of one that is cancelled before it has begun, no line runs."""
        has_failed = task.cancelled() or task.exception() is not None
        del self._passes[key]
        self._requeue(key, Verdict(Ending.ERROR) if has_failed else task.result())
        self._queue.done(key)

    def _requeue(self, key: Key, verdict: Verdict) -> None:
        if verdict.ending in RETRIED:
            self._queue.add_after(key, self._failures.wait(key, verdict.at_least))
        else:
            self._failures.forget(key)
        if verdict.ending is Ending.GONE:
            self._queue.forget(key)
        if verdict.wake_after is not None:
            self._queue.add_after(key, verdict.wake_after)


async def _ended(task: asyncio.Task[Verdict]) -> None:
    """Until it has, however; and with less ado than `asyncio.wait`, for there is one for each pass."""
    ended = asyncio.get_running_loop().create_future()

    def tell(_task: asyncio.Task[Verdict]) -> None:
        if not ended.done():
            ended.set_result(None)

    task.add_done_callback(tell)
    await ended
