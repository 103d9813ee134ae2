"""Write fences, and the place where leader elections run.

Elections run on the lease thread in production, and as tasks of the same loop in simulation and tests. Without leader
election (`nodeyard run` without `--leader-elect`, one-shot commands) the fence is `ALWAYS`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from nodeyard.client.api import Client
from nodeyard.runtime.leader.lease_thread import LeaseThread

Work = Callable[[Client, asyncio.Event], Awaitable[None]]
"""Runs with its own client until the event is set."""


class WriteFence(Protocol):
    """Tells whether writes may go out now; constant time, any thread."""

    def may_write(self) -> bool: ...


@dataclass(frozen=True)
class OpenFence:
    def may_write(self) -> bool:
        return True


@dataclass(frozen=True)
class ClosedFence:
    def may_write(self) -> bool:
        return False


ALWAYS = OpenFence()
CLOSED = ClosedFence()


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
        self._thread = LeaseThread()
        self._is_started = False

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive

    def start(self) -> None:
        self._is_started = True
        self._thread.start()

    def run(self, work: Work) -> None:
        async def connected(stopped: asyncio.Event) -> None:
            client = self._connect()
            try:
                await work(client, stopped)
            finally:
                await client.close()

        self._thread.run(connected)

    async def stop(self) -> None:
        if self._is_started:
            await self._thread.stop()


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
        async def working() -> None:
            await work(self._client, self._stopped)

        self._tasks.append(asyncio.create_task(working(), name="election"))

    async def stop(self) -> None:
        self._stopped.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
