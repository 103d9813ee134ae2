"""The lease thread: an event loop of its own for work with deadlines, such as Lease renewals.

Neither a plan of ten seconds nor a burst of events on the main loop delays it. Its work uses its own connections, so
that no request of the main loop is queued before a renewal.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable

from nodeyard.process.logs import get_logger

Work = Callable[[asyncio.Event], Awaitable[None]]
"""Runs until the event is set, then cleans up and returns."""

_log = get_logger("leases")


class LeaseThread:
    def __init__(self, name: str = "leases") -> None:
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._running: list[concurrent.futures.Future[None]] = []

    @property
    def is_alive(self) -> bool:
        """True while the thread and all its work are running."""
        return self._thread.is_alive() and not any(work.done() for work in self._running)

    def start(self) -> None:
        self._thread.start()

    def run(self, work: Work) -> None:
        """Start work on the thread's loop; callable from any thread."""
        self._running.append(asyncio.run_coroutine_threadsafe(self._guard(work), self._loop))

    async def stop(self) -> None:
        """Stop all work, wait for it and end the thread; called on the main loop."""
        self._loop.call_soon_threadsafe(self._stopped.set)
        await asyncio.gather(*(asyncio.wrap_future(work) for work in self._running), return_exceptions=True)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)

    async def _guard(self, work: Work) -> None:
        try:
            await work(self._stopped)
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
