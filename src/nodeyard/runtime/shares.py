"""The keys of one capability, shared out among replicas: each key has a Lease of its own, and whoever holds it has it.

    every 2 s: list all Leases of the capability ──▶ who lives (`replicas`) ──▶ who should have what (`apportioning`)
        free, and our turn       ──▶ campaign for it
        ours, but another's turn ──▶ give it up, a few at a time, once that one has been alive for a while
        of a key that is gone    ──▶ give it up, and delete it

That nobody else has a key is decided by its Lease alone (`leader`); the rest only decides who tries. Reading is one
request for all keys, and a renewal one for each key that we have, all on the same connections.

The empty key stands for the capability itself: who has it does what is done once for all keys, such as registering
webhooks. Its Lease is the one by which capabilities that are not shared elect their leader.
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
from nodeyard.client.resources import LEASES
from nodeyard.kube.names import CAPABILITY, NAMESPACE, SHARE_KEY
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.apportioning import patience, ranked, replica_lease, replica_prefix, share_lease
from nodeyard.runtime.capability import Key
from nodeyard.runtime.elections import CLOSED, Gate
from nodeyard.runtime.leader import Leader, Timing, first_of, traceback_of, within
from nodeyard.runtime.lease import Lease, Marks
from nodeyard.runtime.replicas import Replicas
from nodeyard.runtime.share import Share

LOOK_SECONDS: Final = 2.0
"""Between two looks at all Leases, at most."""
GLANCE_SECONDS: Final = 0.25
"""Between two looks, at least."""
STALE_SECONDS: Final = 300.0
"""A Lease of no key and no living replica that has stood still for so long is deleted."""
REFUSED_SECONDS: Final = 300.0
"""A key that was given up, and that its new owner did not take, is kept for so long."""
HAND_OVER_SHARE: Final = 10
"""Of the keys that we have, one in so many is handed over between two looks; at least one."""
WHOLE: Final = ""
"""The key that stands for the capability itself."""

_LEASES: Final = LEASES.decoded_as(Lease)

_log = get_logger("shares")


class Keeper(Protocol):
    """Who works on the keys; called where the elections run."""

    def turned(self, key: Key, is_ours: bool) -> None: ...

    async def finished(self, key: Key) -> None:
        """Nothing of this key is in flight any more; its gate is closed already."""


class Shares:
    def __init__(
        self, capability: str, identity: str, keeper: Keeper, *, clock: Clock, random: Random, timing: Timing
    ) -> None:
        self._capability = capability
        self._identity = identity
        self._keeper = keeper
        self._clock = clock
        self._random = random
        self._timing = timing
        self._replicas = Replicas(identity, clock, timing.duration)
        self._shares: dict[Key, Share] = {}
        self._keys: frozenset[Key] | None = None
        self._strays: dict[str, tuple[str, float]] = {}
        """Leases of nobody: their versions, and since when they have stood still."""
        self._yielding: dict[Key, asyncio.Task[None]] = {}
        self._client: Client
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self.error = ""
        """Why the last look failed; empty while all is well."""

    # asked from any thread

    def gate_of(self, key: Key) -> Gate:
        return self._shares.get(key, CLOSED)

    def holder_of(self, key: Key) -> str:
        """Who has it, as last seen."""
        share = self._shares.get(key)
        return "" if share is None else share.leader.holder

    def offer(self, keys: Iterable[Key]) -> None:
        """The keys that there are now. Before the first time we are no candidate for any."""
        keys = frozenset(keys) | {WHOLE}
        if keys != self._keys:
            self._keys = keys
            if self._loop is not None:
                # The loop of the elections may end while we say so.
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._wake.set)

    # running

    async def run(self, client: Client, stopped: asyncio.Event) -> None:
        """Until `stopped`; then everything is given back."""
        self._client, self._loop = client, asyncio.get_running_loop()
        presence = self._leader(replica_lease(self._capability, self._identity))
        present, gone = None, asyncio.Event()
        try:
            while not stopped.is_set():
                seconds = self._timing.interval
                if self._keys is not None:
                    present = present or asyncio.create_task(presence.run(client, gone), name="presence")
                    seconds = await self._turn()
                await first_of(stopped.wait(), self._woken(), self._clock.sleep(seconds))
        finally:
            self._loop = None
            gone.set()
            if present is not None:
                # First, so that nobody waits for us to take what we are about to give back.
                await asyncio.gather(present, return_exceptions=True)
                await self._delete(presence.name, presence.version)
            await self._end()

    async def _woken(self) -> None:
        await self._wake.wait()
        self._wake.clear()

    async def _end(self) -> None:
        for task in self._yielding.values():
            task.cancel()
        await asyncio.gather(*self._yielding.values(), return_exceptions=True)
        await asyncio.gather(*(share.end() for share in self._shares.values()))

    async def _turn(self) -> float:
        """One look at all Leases and what follows from it; in how many seconds the next is due."""
        asked_at = self._clock.monotonic()
        try:
            leases = await within(self._list(), self._timing.deadline, self._clock, "Leases")
        except Exception as error:
            self.error = str(error) or type(error).__name__
            _log.warning("leases not read", capability=self._capability, reason=self.error, **traceback_of(error))
            return self._timing.retry
        self.error = ""
        keys = self._keys or frozenset()
        prefix = replica_prefix(self._capability)
        self._replicas.see(lease for name, lease in leases.items() if name.startswith(prefix))
        for key in keys - self._shares.keys():
            self._shares[key] = self._share(key)
        for share in self._shares.values():
            share.saw(leases.get(share.leader.name), asked_at)
        self._part_with_gone(keys)
        living = self._replicas.living
        self._hand_over(keys, living)
        wait = self._campaign(keys, living)
        await self._sweep(leases, living)
        return min(max(wait, GLANCE_SECONDS), LOOK_SECONDS)

    async def _list(self) -> dict[str, Lease]:
        page = await self._client.list(_LEASES, NAMESPACE, labels=f"{CAPABILITY}={self._capability}")
        return {lease.metadata.name: lease for lease in page.items}

    # the steps of a turn

    def _campaign(self, keys: Collection[Key], living: Collection[str]) -> float:
        """For what is free, in our turn; seconds until something may be."""
        wait = LOOK_SECONDS
        for key in keys:
            share = self._shares[key]
            if share.is_lost:
                self._begin_yield(key, share)
            if share.is_running:
                continue
            seconds = patience(key, self._identity, living, share.leader.holder, share.leader.free_for)
            if seconds <= 0:
                share.begin(self._client)
            else:
                wait = min(wait, seconds)
        return wait

    def _hand_over(self, keys: Collection[Key], living: Collection[str]) -> None:
        """A few of those that another should have, where it has been alive for a while."""
        ours = sorted(key for key in keys if self._shares[key].may_write())
        now, left = self._clock.monotonic(), max(1, len(ours) // HAND_OVER_SHARE) - len(self._yielding)
        for key in ours:
            first = ranked(key, living)[0]
            share = self._shares[key]
            if left <= 0:
                return
            if first == self._identity or now < share.kept_until or not self._replicas.is_steady(first):
                continue
            _log.info("handing over", lease=share.leader.name, to=first, reason="it is that replica's to have")
            self._begin_yield(key, share, to=first)
            left -= 1

    def _part_with_gone(self, keys: Collection[Key]) -> None:
        for key in self._shares.keys() - keys:
            share = self._shares[key]
            if share.is_running:
                self._begin_yield(key, share, deletes=True)
            elif key not in self._yielding:
                del self._shares[key]

    def _begin_yield(self, key: Key, share: Share, *, to: str = "", deletes: bool = False) -> None:
        if key not in self._yielding:
            giving_up = self._yield(key, share, to, deletes=deletes)
            self._yielding[key] = asyncio.create_task(giving_up, name=f"yield {share.leader.name}")

    async def _yield(self, key: Key, share: Share, to: str, *, deletes: bool) -> None:
        try:
            await share.give_up(partial(self._keeper.finished, key), to=to)
            if deletes and not share.leader.holder:
                await self._delete(share.leader.name, share.leader.version)
        finally:
            del self._yielding[key]

    async def _sweep(self, leases: dict[str, Lease], living: Collection[str]) -> None:
        """What keys and replicas that are long gone have left."""
        known = {share.leader.name for share in self._shares.values()}
        known |= {replica_lease(self._capability, each) for each in living}
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
        """Only as we saw it: what somebody has taken up since stays."""
        if not version:
            return
        deleting = self._client.delete(_LEASES, name, NAMESPACE, options=DeleteOptions(resource_version=version))
        try:
            await within(deleting, self._timing.deadline, self._clock, f"Lease {name}")
            _log.info("deleted", lease=name, reason="nobody needs it any more")
        except (NotFound, Conflict):
            return
        except Exception as error:
            _log.warning("not deleted", lease=name, reason=str(error), **traceback_of(error))

    # making

    def _share(self, key: Key) -> Share:
        def turned(is_ours: bool) -> None:
            if is_ours and share.yielded_to:
                share.yielded_to, share.kept_until = "", self._clock.monotonic() + REFUSED_SECONDS
            self._keeper.turned(key, is_ours)

        share = Share(self._leader(share_lease(self._capability, key), key, turned), self._clock)
        return share

    def _leader(self, name: str, key: Key = WHOLE, on_change: Callable[[bool], None] = lambda _: None) -> Leader:
        return Leader(
            name,
            self._identity,
            self._clock,
            timing=self._timing,
            random=self._random,
            on_change=on_change,
            marks=Marks({CAPABILITY: self._capability}, {SHARE_KEY: key} if key else {}),
        )
