"""The place where leader elections and background loops run.

In production that is the lease thread, an event loop of its own: neither a plan of ten seconds nor a burst of events on
the main loop delays a Lease renewal. Its work uses its own connections, so that no request of the main loop is queued
before a renewal. In simulation and tests elections are tasks of the main loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from nodeyard.client.api import Client
from nodeyard.process.logs import get_logger

Work = Callable[[Client, asyncio.Event], Awaitable[None]]
"""Runs with its own client until the event is set, then cleans up and returns."""

THREAD_NAME: Final = "leases"

_log = get_logger("leases")


class Elections(Protocol):
    @property
    def is_alive(self) -> bool: ...

    def start(self) -> None: ...

    def run(self, work: Work) -> None: ...

    async def stop(self) -> None:
        """Stop all work and wait for it; leases are released."""


class ThreadElections:
    """Runs elections on the lease thread. `connect` is called there once per work, for connections of its own."""

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name=THREAD_NAME, daemon=True)
        self._running: list[concurrent.futures.Future[None]] = []
        self._is_started = False

    @property
    def is_alive(self) -> bool:
        """True while the thread and all its work are running."""
        return self._thread.is_alive() and not any(work.done() for work in self._running)

    def start(self) -> None:
        self._is_started = True
        self._thread.start()

    def run(self, work: Work) -> None:
        """Start work on the thread's loop; callable from any thread."""
        self._running.append(asyncio.run_coroutine_threadsafe(self._run(work), self._loop))

    async def stop(self) -> None:
        """Stop all work, wait for it and end the thread; called on the main loop."""
        if not self._is_started:
            return
        self._loop.call_soon_threadsafe(self._stopped.set)
        await asyncio.gather(*(asyncio.wrap_future(work) for work in self._running), return_exceptions=True)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)

    async def _run(self, work: Work) -> None:
        try:
            client = self._connect()
            try:
                await work(client, self._stopped)
            finally:
                await client.close()
        except Exception:
            _log.exception("lease loop failed")
            raise

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


class TaskElections:
    """Runs elections as tasks of the current loop with the given client, for virtual time."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._stopped = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_alive(self) -> bool:
        return not any(task.done() for task in self._tasks)

    def start(self) -> None:
        self._stopped.clear()

    def run(self, work: Work) -> None:
        async def run() -> None:
            await work(self._client, self._stopped)

        self._tasks.append(asyncio.create_task(run(), name="election"))

    async def stop(self) -> None:
        self._stopped.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
