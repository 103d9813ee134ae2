"""Leadership over keys: over all by one Lease (or without election), or over a shard of them by a Lease per key.

Elections run on their own thread; the owner of the keys is called on the main loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Final, Protocol

from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Key
from nodeyard.runtime.leader.election import Leader, lease_name, unelected_lease_name
from nodeyard.runtime.leader.elections import Elections
from nodeyard.runtime.leader.write_fence import ALWAYS, WriteFence
from nodeyard.runtime.settings import Settings
from nodeyard.runtime.sharding.leases import WHOLE, ShardLeases

# Debounce: changes within this time cause one listing of the keys.
DEBOUNCE_SECONDS: Final = 0.2

_log = get_logger("leadership")


class Owner(Protocol):
    """The worker of the keys; called on the main loop."""

    def on_acquired(self, key: Key | None) -> None:
        """The key is ours and must be queued; None means all keys."""

    def on_lost(self, key: Key | None) -> None:
        """The key is no longer ours, and its work must be stopped; None means all keys."""

    async def finish(self, key: Key) -> None:
        """The key is being handed over: start nothing, and return when nothing is in flight."""


class Leadership(Protocol):
    @property
    def fence(self) -> WriteFence:
        """The write fence of work that belongs to no single key."""

    @property
    def holder(self) -> str:
        """The replica that does the work that belongs to no single key, as last seen."""

    def fence_of(self, key: Key) -> WriteFence:
        """Return the write fence of a key; constant time, any thread."""

    def is_ours(self, key: Key) -> bool:
        """Return True if remote clusters of the key should be connected and their caches kept warm."""

    @property
    def may_write_any(self) -> bool: ...

    @property
    def held(self) -> int | None:
        """Number of owned keys; None without sharding."""

    def start(self, elections: Elections) -> None:
        """Start the elections; called on the main loop."""

    def refresh_keys(self) -> None:
        """The set of keys may have changed."""

    def publish(self, texts: Mapping[Key, str]) -> None:
        """Set the annotations that describe this process, from the next renewal on: by key, `WHOLE` for all."""

    async def run(self) -> None:
        """Run on the main loop until cancelled."""


class SingleLeader:
    """All keys or none: by one Lease, or always without election. Then the Lease only describes the process."""

    def __init__(self, capability: str, owner: Owner, settings: Settings, clock: Clock, random: Random) -> None:
        self._owner = owner
        self._identity = settings.identity
        self._main_loop: asyncio.AbstractEventLoop
        self._published = ""
        self._leader: Leader | None = None
        is_elected = settings.leader_elect
        self._lease = Leader(
            lease_name(capability) if is_elected else unelected_lease_name(capability),
            settings.identity,
            clock,
            timing=settings.lease,
            random=random,
            on_change=self._on_change if is_elected else lambda _leads: None,
            published=lambda: self._published,
        )
        if is_elected:
            self._leader = self._lease

    @property
    def fence(self) -> WriteFence:
        return ALWAYS if self._leader is None else self._leader

    @property
    def holder(self) -> str:
        return self._identity if self._leader is None else self._leader.holder

    def fence_of(self, _key: Key) -> WriteFence:
        return self.fence

    def is_ours(self, _key: Key) -> bool:
        """True on followers too: their warm caches let them take over at once."""
        return True

    @property
    def may_write_any(self) -> bool:
        return self.fence.may_write()

    @property
    def held(self) -> int | None:
        return None

    def start(self, elections: Elections) -> None:
        self._main_loop = asyncio.get_running_loop()
        elections.run(self._lease.run)

    def refresh_keys(self) -> None:
        """Do nothing: one Lease covers all keys."""

    def publish(self, texts: Mapping[Key, str]) -> None:
        self._published = texts.get(WHOLE, "")

    async def run(self) -> None:
        await asyncio.Event().wait()

    def _on_change(self, leads: bool) -> None:
        """Forward a change from the election's loop to the main loop."""
        self._main_loop.call_soon_threadsafe(self._owner.on_acquired if leads else self._owner.on_lost, None)


class ShardedLeadership:
    """The keys whose Leases this replica holds. `keys` lists all keys; None while they are unknown."""

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
        self._texts: Mapping[Key, str] = {}
        self._leases = ShardLeases(
            capability,
            settings.identity,
            self,
            clock=clock,
            random=random,
            timing=settings.key_lease,
            published=lambda key: self._texts.get(key, ""),
        )
        self._held: set[Key] = set()
        self._main_loop: asyncio.AbstractEventLoop
        self._wake = asyncio.Event()

    @property
    def fence(self) -> WriteFence:
        return self._leases.fence_of(WHOLE)

    @property
    def holder(self) -> str:
        return self._leases.holder_of(WHOLE)

    def fence_of(self, key: Key) -> WriteFence:
        return self._leases.fence_of(key)

    def is_ours(self, key: Key) -> bool:
        return key in self._held

    @property
    def may_write_any(self) -> bool:
        return self.fence.may_write() or any(self.fence_of(key).may_write() for key in self._held)

    @property
    def held(self) -> int | None:
        return len(self._held)

    def start(self, elections: Elections) -> None:
        self._main_loop = asyncio.get_running_loop()
        elections.run(self._leases.run)

    def refresh_keys(self) -> None:
        self._wake.set()

    def publish(self, texts: Mapping[Key, str]) -> None:
        self._texts = texts

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._update_keys()
            await self._clock.sleep(DEBOUNCE_SECONDS)

    def _update_keys(self) -> None:
        try:
            keys = self._keys()
        except Exception:
            _log.exception("listing keys failed", capability=self._capability)
            return
        if keys is not None:
            self._leases.set_keys(keys)

    # called on the election's loop

    def on_ownership(self, key: Key, is_ours: bool) -> None:
        self._main_loop.call_soon_threadsafe(self._apply_change, key, is_ours)

    async def finish(self, key: Key) -> None:
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._owner.finish(key), self._main_loop))

    def _apply_change(self, key: Key, is_ours: bool) -> None:
        if key == WHOLE:
            return
        (self._held.add if is_ours else self._held.discard)(key)
        (self._owner.on_acquired if is_ours else self._owner.on_lost)(key)
