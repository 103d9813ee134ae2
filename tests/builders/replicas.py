"""Replicas that shard keys on the embedded server in process, under virtual time, without planning."""

import asyncio
from contextlib import asynccontextmanager
from random import Random

from tests.builders.managers import FaultyTransport, cut

from nodeyard.client.resources import LEASES
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime.settings import KEY_LEASE
from nodeyard.runtime.sharding.leases import ShardLeases
from nodeyard.sim.embedded import connect

KEYS = tuple(f"leaf-{number}" for number in range(12))


class Replica:
    """One replica, with a diary of the keys that it acquired and lost."""

    def __init__(self, server, clock, identity, keys=KEYS):
        self.identity = identity
        self.diary = []
        self.finishing = None
        """Event that a key awaits before it is released; None: nothing is in flight."""
        self.client = connect(server)
        self.tap = self.client.transport = FaultyTransport(self.client.transport)
        self.shares = ShardLeases("trees", identity, self, clock=clock, random=Random(identity), timing=KEY_LEASE)
        if keys is not None:
            self.shares.set_keys(keys)
        self._stopped = asyncio.Event()
        self._task = asyncio.create_task(self.shares.run(self.client, self._stopped))

    # the keeper

    def on_ownership(self, key, is_ours):
        self.diary.append((key, is_ours))

    async def finish(self, key):
        assert not self.shares.fence_of(key).may_write()
        if self.finishing is not None:
            await self.finishing.wait()

    # state and faults

    def has(self, *keys):
        """Return the keys that it may write for."""
        return {key for key in keys or KEYS if self.shares.fence_of(key).may_write()}

    def part(self):
        """Cut the connection to the server."""
        self.tap.fail = cut

    def mend(self):
        self.tap.fail = lambda _method, _path: None

    async def stop(self):
        self._stopped.set()
        await self._task

    async def kill(self):
        """Stop like a killed process: no Lease is released."""
        self.part()
        await self.stop()


class Fleet:
    """The replicas of one test."""

    def __init__(self, server, clock):
        self._server = server
        self._clock = clock
        self.replicas = []
        self.client = connect(server)

    def add(self, identity, keys=KEYS):
        self.replicas.append(Replica(self._server, self._clock, identity, keys))
        return self.replicas[-1]

    async def pass_time(self, seconds, step=0.25):
        """Advance the clock; assert at each step that no key has two owners."""
        for _ in range(round(seconds / step)):
            await self._clock.advance(step)
            had = [key for replica in self.replicas for key in replica.has("", *KEYS)]
            assert len(had) == len(set(had)), f"had twice: {sorted(key for key in had if had.count(key) > 1)}"

    async def until(self, condition, seconds, step=0.25):
        """Return the seconds until the condition holds; fail after `seconds`."""
        for count in range(round(seconds / step) + 1):
            if condition():
                return count * step
            await self.pass_time(step, step)
        raise AssertionError(f"not within {seconds:g} s")

    async def leases(self):
        """Return the holder of each key, by name."""
        page = await self.client.list(LEASES, NAMESPACE)
        return {each["metadata"]["name"]: each["spec"].get("holderIdentity") for each in page.items}


@asynccontextmanager
async def fleet(server, clock):
    fleet = Fleet(server, clock)
    try:
        yield fleet
    finally:
        for replica in fleet.replicas:
            await replica.stop()
