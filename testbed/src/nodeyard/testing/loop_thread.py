"""Event loop in a thread, for servers that blocking tests, subprocesses and coroutines use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 60.0


class LoopThread:
    """Context manager that runs an event loop; subclasses implement `_start` and `_stop`, which run on it."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    async def _start(self) -> None:
        """Start serving."""

    async def _stop(self) -> None:
        """Stop serving."""

    def start(self) -> Self:
        self._thread.start()
        self.run(self._start())
        return self

    def close(self) -> None:
        self.run(self._stop())
        self.run(_cancel_remaining_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def _cancel_remaining_tasks() -> None:
    """Cancel tasks of aborted connections, which the loop would warn about."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
