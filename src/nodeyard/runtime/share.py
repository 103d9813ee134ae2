"""One key's Lease, and our part in it: whether we try to have it, have it, or are giving it up.

    following ──begin──▶ campaigning ──▶ ours ──give_up──▶ yielding: nothing is written, the Lease still renewed
        ▲                                                      │  until what is in flight has ended
        └──────────────────────── released ◀───────────────────┘

While we follow, nothing runs for it: whoever reads all Leases at once tells us how it stands (`saw`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nodeyard.client.api import Client
from nodeyard.process.clock import Clock
from nodeyard.runtime.leader import Leader
from nodeyard.runtime.lease import Lease


class Share:
    """A `Gate`: what belongs to the key may be written while it says so."""

    def __init__(self, leader: Leader, clock: Clock) -> None:
        self.leader = leader
        self._clock = clock
        self.yielded_to = ""
        """Whom we last gave it up for; empty when nobody, or since it has been another's."""
        self.kept_until = 0.0
        """Not given up for another before this moment."""
        self.ended_at = 0.0
        """When we last had done with it."""
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
        """We try to have it, and another has it."""
        leader = self.leader
        return self.is_running and not leader.leads and leader.holder not in ("", leader.identity)

    def saw(self, lease: Lease | None, asked_at: float) -> None:
        """How it stands, as was asked at that moment: an answer from before our own last word is none."""
        if not self.is_running and asked_at > self.ended_at:
            self.leader.saw(lease)
            if self.leader.holder not in ("", self.leader.identity):
                self.yielded_to = ""

    def begin(self, client: Client) -> None:
        if self._running is None:
            self._stop.clear()
            self._running = asyncio.create_task(self.leader.run(client, self._stop), name=f"share {self.leader.name}")

    async def give_up(self, finished: Callable[[], Awaitable[None]], *, to: str = "") -> None:
        """Let what is in flight end, then release."""
        self.is_yielding, self.yielded_to = True, to
        try:
            await finished()
        finally:
            await self.end()

    async def end(self) -> None:
        """Release at once."""
        running = self._running
        if running is not None:
            self._stop.set()
            await asyncio.gather(running, return_exceptions=True)
        self._running = None
        self.is_yielding = False
        self.ended_at = self._clock.monotonic()
