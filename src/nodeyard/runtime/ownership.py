"""Which keys are ours: all of them, by one Lease or without any, or those that we have a share in.

Elections run on a thread of their own; whoever works on the keys is told on the main loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from random import Random
from typing import Final, Protocol

from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Key
from nodeyard.runtime.elections import ALWAYS, Elections, Gate
from nodeyard.runtime.leader import Leader, lease_name
from nodeyard.runtime.settings import Settings
from nodeyard.runtime.shares import WHOLE, Shares

# Changes of one moment are one question for the keys.
OFFER_SECONDS: Final = 0.2

_log = get_logger("ownership")


class Owner(Protocol):
    """Who works on the keys; called on the main loop."""

    def gained(self, key: Key | None) -> None:
        """It is ours from here on, and due; None: all are."""

    def lost(self, key: Key | None) -> None:
        """It is not ours any more, and nothing of it may be in flight for long; None: none is."""

    async def finish(self, key: Key) -> None:
        """It is about to be another's: begin nothing, and return when nothing is in flight."""


class Ownership(Protocol):
    @property
    def gate(self) -> Gate:
        """For what is not of one key."""

    @property
    def holder(self) -> str:
        """Who does what is not of one key, as last seen."""

    def gate_of(self, key: Key) -> Gate:
        """Constant time, any thread."""

    def is_ours(self, key: Key) -> bool:
        """Whether to keep ready for the key: further clusters are connected, their caches kept warm."""

    @property
    def may_write_any(self) -> bool: ...

    @property
    def held(self) -> int | None:
        """How many keys we have; None where it is all or none."""

    def start(self, elections: Elections) -> None:
        """On the main loop."""

    def look_again(self) -> None:
        """There may be other keys than before."""

    async def run(self) -> None:
        """On the main loop, until cancelled."""


class Undivided:
    """All keys or none: by one Lease, or all of them always."""

    def __init__(self, capability: str, owner: Owner, settings: Settings, clock: Clock, random: Random) -> None:
        self._owner = owner
        self._identity = settings.identity
        self._home: asyncio.AbstractEventLoop
        self._leader: Leader | None = None
        if settings.leader_elect:
            name, timing = lease_name(capability), settings.lease
            self._leader = Leader(
                name, settings.identity, clock, timing=timing, random=random, on_change=self._on_change
            )

    @property
    def gate(self) -> Gate:
        return ALWAYS if self._leader is None else self._leader

    @property
    def holder(self) -> str:
        return self._identity if self._leader is None else self._leader.holder

    def gate_of(self, _key: Key) -> Gate:
        return self.gate

    def is_ours(self, _key: Key) -> bool:
        """Also while another leads: whoever follows takes over with what it knows already."""
        return True

    @property
    def may_write_any(self) -> bool:
        return self.gate.may_write()

    @property
    def held(self) -> int | None:
        return None

    def start(self, elections: Elections) -> None:
        self._home = asyncio.get_running_loop()
        if self._leader is not None:
            elections.run(self._leader.run)

    def look_again(self) -> None:
        """All keys are one."""

    async def run(self) -> None:
        await asyncio.Event().wait()

    def _on_change(self, leads: bool) -> None:
        """Called where the election runs."""
        self._home.call_soon_threadsafe(self._owner.gained if leads else self._owner.lost, None)


class Shared:
    """Those keys that we have a share in. `keys` says which there are; None while that is not known."""

    def __init__(
        self,
        capability: str,
        owner: Owner,
        keys: Callable[[], Iterable[Key] | None],
        settings: Settings,
        clock: Clock,
        random: Random,
    ) -> None:
        self._owner = owner
        self._keys = keys
        self._clock = clock
        self._capability = capability
        self._shares = Shares(capability, settings.identity, self, clock=clock, random=random, timing=settings.share)
        self._held: set[Key] = set()
        self._home: asyncio.AbstractEventLoop
        self._wake = asyncio.Event()

    @property
    def gate(self) -> Gate:
        return self._shares.gate_of(WHOLE)

    @property
    def holder(self) -> str:
        return self._shares.holder_of(WHOLE)

    def gate_of(self, key: Key) -> Gate:
        return self._shares.gate_of(key)

    def is_ours(self, key: Key) -> bool:
        return key in self._held

    @property
    def may_write_any(self) -> bool:
        return self.gate.may_write() or any(self.gate_of(key).may_write() for key in self._held)

    @property
    def held(self) -> int | None:
        return len(self._held)

    def start(self, elections: Elections) -> None:
        self._home = asyncio.get_running_loop()
        elections.run(self._shares.run)

    def look_again(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._offer()
            await self._clock.sleep(OFFER_SECONDS)

    def _offer(self) -> None:
        try:
            keys = self._keys()
        except Exception:
            _log.exception("keeping the known keys", capability=self._capability)
            return
        if keys is not None:
            self._shares.offer(keys)

    # told where the elections run

    def turned(self, key: Key, is_ours: bool) -> None:
        self._home.call_soon_threadsafe(self._turn, key, is_ours)

    async def finished(self, key: Key) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._owner.finish(key), self._home))

    def _turn(self, key: Key, is_ours: bool) -> None:
        if key == WHOLE:
            return
        (self._held.add if is_ours else self._held.discard)(key)
        (self._owner.gained if is_ours else self._owner.lost)(key)
