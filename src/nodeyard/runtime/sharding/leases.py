"""Sharding of one capability's keys over replicas: each key has its own Lease, and its holder owns the key.

    every 2 s: list all Leases of the capability ──▶ live replicas (`members`) ──▶ wanted owners (`assignment`)
        free, and our turn         ──▶ campaign for it
        ours, but wanted elsewhere ──▶ hand it over, a few at a time, once that replica has been live for a while
        key is deleted             ──▶ release and delete the Lease

Mutual exclusion depends only on the key's Lease (`leader`); the rest only decides who campaigns. Reading is one request
for all keys, renewing one per owned key, all on the same connections.

The empty key stands for the capability itself: its owner does the work that belongs to no single key, such as
registering webhooks. Its Lease is the leader Lease of an unsharded capability.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable
from functools import partial
from random import Random
from typing import Final, Protocol

from nodeyard.client.api import Client, DeleteOptions
from nodeyard.client.errors import Conflict, NotFound
from nodeyard.client.outages import OUTAGES
from nodeyard.client.resources import LEASES
from nodeyard.kube.names import CAPABILITY, NAMESPACE, SHARE_KEY
from nodeyard.process.aio import first_of
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Key
from nodeyard.runtime.leader.election import Leader, Timing, traceback_of, within
from nodeyard.runtime.leader.lease import Lease, LeaseMetadata
from nodeyard.runtime.leader.write_fence import CLOSED, WriteFence
from nodeyard.runtime.sharding.assignment import acquire_delay, key_lease, rank, replica_lease, replica_prefix
from nodeyard.runtime.sharding.members import Members
from nodeyard.runtime.sharding.shard import Shard

LIST_SECONDS: Final = 2.0
"""Longest time between two lists of all Leases."""
LIST_MIN_SECONDS: Final = 0.25
"""Shortest time between two lists."""
STALE_SECONDS: Final = 300.0
"""A Lease without a key or a live replica is deleted after it has been unchanged for this long."""
REFUSED_SECONDS: Final = 300.0
"""A yielded key that its new owner did not take is kept for this long."""
HAND_OVER_DIVISOR: Final = 10
"""One in this many owned keys is handed over between two lists; at least one."""
WHOLE: Final = ""
"""The key of the capability itself."""

_LEASES: Final = LEASES.decoded_as(Lease)

_log = get_logger("shares")


class KeyOwner(Protocol):
    """Callbacks of the key owner; called on the election's loop."""

    def on_ownership(self, key: Key, is_ours: bool) -> None: ...

    async def finish(self, key: Key) -> None:
        """Wait until nothing of the key is in flight; its write fence is already closed."""


class ShardLeases:
    def __init__(
        self,
        capability: str,
        identity: str,
        owner: KeyOwner,
        *,
        clock: Clock,
        random: Random,
        timing: Timing,
        published: Callable[[Key], str] = lambda _key: "",
    ) -> None:
        """`published` returns the annotation of a key's Lease that describes its holder."""
        self._capability = capability
        self._identity = identity
        self._owner = owner
        self._clock = clock
        self._random = random
        self._timing = timing
        self._published = published
        self._members = Members(identity, clock, timing.duration)
        self._shards: dict[Key, Shard] = {}
        self._keys: frozenset[Key] | None = None
        self._strays: dict[str, tuple[str, float]] = {}
        """Leases without a key or live replica: their versions, and since when they are unchanged."""
        self._yielding: dict[Key, asyncio.Task[None]] = {}
        self._client: Client
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self.error = ""
        """The error of the last list; empty after a success."""

    # callable from any thread

    def fence_of(self, key: Key) -> WriteFence:
        return self._shards.get(key, CLOSED)

    def holder_of(self, key: Key) -> str:
        """Return the holder of a key, as last seen."""
        shard = self._shards.get(key)
        return "" if shard is None else shard.leader.holder

    def set_keys(self, keys: Iterable[Key]) -> None:
        """Set the existing keys. Before the first call this replica campaigns for none."""
        keys = frozenset(keys) | {WHOLE}
        if keys != self._keys:
            self._keys = keys
            if self._loop is not None:
                # The election's loop may close concurrently.
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._wake.set)

    # running

    async def run(self, client: Client, stopped: asyncio.Event) -> None:
        """Run until `stopped`; then release all Leases."""
        self._client, self._loop = client, asyncio.get_running_loop()
        presence = self._new_leader(replica_lease(self._capability, self._identity))
        present, gone = None, asyncio.Event()
        try:
            while not stopped.is_set():
                seconds = self._timing.interval
                if self._keys is not None:
                    present = present or asyncio.create_task(presence.run(client, gone), name="presence")
                    seconds = await self._reconcile()
                await first_of(stopped.wait(), self._wait_for_wake(), self._clock.sleep(seconds))
        finally:
            self._loop = None
            gone.set()
            if present is not None:
                # Deleted first, so that no replica waits for us to take keys that we are about to release.
                await asyncio.gather(present, return_exceptions=True)
                await self._delete(presence.name, presence.version)
            await self._release_all()

    async def _wait_for_wake(self) -> None:
        await self._wake.wait()
        self._wake.clear()

    async def _release_all(self) -> None:
        for task in self._yielding.values():
            task.cancel()
        await asyncio.gather(*self._yielding.values(), return_exceptions=True)
        await asyncio.gather(*(shard.end() for shard in self._shards.values()))

    async def _reconcile(self) -> float:
        """List all Leases and act on them; return the seconds until the next list."""
        asked_at = self._clock.monotonic()
        try:
            leases = await within(self._list(), self._timing.deadline, self._clock, "Leases")
        except Exception as error:
            self.error = str(error) or type(error).__name__
            name = self._capability
            OUTAGES.log(_log, "lease list failed", name, error, capability=name, **traceback_of(error))
            return self._timing.retry
        self.error = ""
        keys = self._keys or frozenset()
        prefix = replica_prefix(self._capability)
        self._members.observe(lease for name, lease in leases.items() if name.startswith(prefix))
        for key in keys - self._shards.keys():
            self._shards[key] = self._new_shard(key)
        for shard in self._shards.values():
            shard.observe(leases.get(shard.leader.name), asked_at)
        self._release_deleted(keys)
        live = self._members.live
        self._hand_over(keys, live)
        wait = self._campaign(keys, live)
        await self._delete_strays(leases, live)
        return min(max(wait, LIST_MIN_SECONDS), LIST_SECONDS)

    async def _list(self) -> dict[str, Lease]:
        page = await self._client.list(_LEASES, NAMESPACE, labels=f"{CAPABILITY}={self._capability}")
        return {lease.metadata.name: lease for lease in page.items}

    # the steps of a pass

    def _campaign(self, keys: Collection[Key], live: Collection[str]) -> float:
        """Campaign for free keys when it is our turn; return the seconds until the next may be."""
        wait = LIST_SECONDS
        for key in keys:
            shard = self._shards[key]
            if shard.is_lost:
                self._begin_yield(key, shard)
            if shard.is_running:
                continue
            seconds = acquire_delay(key, self._identity, live, shard.leader.holder, shard.leader.free_for)
            if seconds <= 0:
                shard.begin(self._client)
            else:
                wait = min(wait, seconds)
        return wait

    def _hand_over(self, keys: Collection[Key], live: Collection[str]) -> None:
        """Hand over a few keys that belong to another replica, if it has been live for a while."""
        ours = sorted(key for key in keys if self._shards[key].may_write())
        now, left = self._clock.monotonic(), max(1, len(ours) // HAND_OVER_DIVISOR) - len(self._yielding)
        for key in ours:
            first = rank(key, live)[0]
            shard = self._shards[key]
            if left <= 0:
                return
            if first == self._identity or now < shard.kept_until or not self._members.is_steady(first):
                continue
            _log.info("lease handover started", lease=shard.leader.name, to=first, reason="rebalancing")
            self._begin_yield(key, shard, to=first)
            left -= 1

    def _release_deleted(self, keys: Collection[Key]) -> None:
        for key in self._shards.keys() - keys:
            shard = self._shards[key]
            if shard.is_running:
                self._begin_yield(key, shard, deletes=True)
            elif key not in self._yielding:
                del self._shards[key]

    def _begin_yield(self, key: Key, shard: Shard, *, to: str = "", deletes: bool = False) -> None:
        if key not in self._yielding:
            giving_up = self._yield(key, shard, to, deletes=deletes)
            self._yielding[key] = asyncio.create_task(giving_up, name=f"yield {shard.leader.name}")

    async def _yield(self, key: Key, shard: Shard, to: str, *, deletes: bool) -> None:
        try:
            await shard.give_up(partial(self._owner.finish, key), to=to)
            if deletes and not shard.leader.holder:
                await self._delete(shard.leader.name, shard.leader.version)
        finally:
            del self._yielding[key]

    async def _delete_strays(self, leases: dict[str, Lease], live: Collection[str]) -> None:
        """Delete Leases of keys and replicas that are long gone."""
        known = {shard.leader.name for shard in self._shards.values()}
        known |= {replica_lease(self._capability, each) for each in live}
        now = self._clock.monotonic()
        strays = {name: lease.metadata.resource_version for name, lease in leases.items() if name not in known}
        before = self._strays
        self._strays = {
            name: before[name] if name in before and before[name][0] == version else (version, now)
            for name, version in strays.items()
        }
        for name, (version, since) in self._strays.items():
            if now - since >= STALE_SECONDS:
                await self._delete(name, version)

    async def _delete(self, name: str, version: str) -> None:
        """Delete a Lease if its resourceVersion is unchanged."""
        if not version:
            return
        deleting = self._client.delete(_LEASES, name, NAMESPACE, options=DeleteOptions(resource_version=version))
        try:
            await within(deleting, self._timing.deadline, self._clock, f"Lease {name}")
            _log.info("lease deleted", lease=name, reason="no key or replica uses it")
        except (NotFound, Conflict):
            return
        except Exception as error:
            _log.warning("lease deletion failed", lease=name, reason=str(error), **traceback_of(error))

    # construction

    def _new_shard(self, key: Key) -> Shard:
        def on_change(is_ours: bool) -> None:
            if is_ours and shard.yielded_to:
                shard.yielded_to, shard.kept_until = "", self._clock.monotonic() + REFUSED_SECONDS
            self._owner.on_ownership(key, is_ours)

        name, published = key_lease(self._capability, key), partial(self._published, key)
        shard = Shard(self._new_leader(name, key, on_change, published), self._clock)
        return shard

    def _new_leader(
        self,
        name: str,
        key: Key = WHOLE,
        on_change: Callable[[bool], None] = lambda _: None,
        published: Callable[[], str] = str,
    ) -> Leader:
        return Leader(
            name,
            self._identity,
            self._clock,
            timing=self._timing,
            random=self._random,
            on_change=on_change,
            metadata=LeaseMetadata({CAPABILITY: self._capability}, {SHARE_KEY: key} if key else {}),
            published=published,
        )
