"""One key's Lease, and our state in it.

    following ──begin──▶ campaigning ──▶ owned ──give_up──▶ yielding: no writes, but the Lease is still renewed
        ▲                                                       │  until nothing is in flight
        └──────────────────────── released ◀────────────────────┘

A followed key has no task: the list of all Leases updates it (`observe`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nodeyard.client.api import Client
from nodeyard.process.clock import Clock
from nodeyard.runtime.leader.election import Leader
from nodeyard.runtime.leader.lease import Lease


class Shard:
    """A `WriteFence`: open while this replica owns the key and does not yield it."""

    def __init__(self, leader: Leader, clock: Clock) -> None:
        self.leader = leader
        self._clock = clock
        self.yielded_to = ""
        """The replica that it was last yielded to; empty if none, or once another replica has held it."""
        self.kept_until = 0.0
        """Not yielded before this monotonic time."""
        self.ended_at = 0.0
        """When our campaign last ended, by the monotonic clock."""
        self.is_yielding = False
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def may_write(self) -> bool:
        return not self.is_yielding and self.leader.may_write()

    @property
    def is_running(self) -> bool:
        return self._running is not None

    @property
    def is_lost(self) -> bool:
        """True if we campaign for it and another replica holds it."""
        leader = self.leader
        return self.is_running and not leader.leads and leader.holder not in ("", leader.identity)

    def observe(self, lease: Lease | None, asked_at: float) -> None:
        """Update from a list request sent at `asked_at`; one from before our own last write is ignored."""
        if not self.is_running and asked_at > self.ended_at:
            self.leader.observe(lease)
            if self.leader.holder not in ("", self.leader.identity):
                self.yielded_to = ""

    def begin(self, client: Client) -> None:
        if self._running is None:
            self._stop.clear()
            self._running = asyncio.create_task(self.leader.run(client, self._stop), name=f"shard {self.leader.name}")

    async def give_up(self, finished: Callable[[], Awaitable[None]], *, to: str = "") -> None:
        """Wait until nothing is in flight, then release."""
        self.is_yielding, self.yielded_to = True, to
        try:
            await finished()
        finally:
            await self.end()

    async def end(self) -> None:
        """Release the Lease at once."""
        running = self._running
        if running is not None:
            self._stop.set()
            await asyncio.gather(running, return_exceptions=True)
        self._running = None
        self.is_yielding = False
        self.ended_at = self._clock.monotonic()
