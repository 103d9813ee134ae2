"""The lease loop on its own: the test provides inputs and write permission, and keeps what the loop publishes."""

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.leases.inputs import LeaseInput, NodeLeaseInput
from nodeyard.capabilities.clustertree.leases.keeper import renew
from nodeyard.client.errors import NotFound
from nodeyard.client.resources import LEASES, NODES
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.background import LoopContext, LoopInputs
from nodeyard.runtime.remote.connect import connect_by_kubeconfig


class QuickClock:
    """Real time that runs five times as fast: a round of ten seconds takes two."""

    def __init__(self, times=5.0):
        self._times = times
        self._real = SystemClock()
        self._start = self._real.now()
        self._began = self._real.monotonic()

    def monotonic(self):
        return (self._real.monotonic() - self._began) * self._times

    def now(self):
        return self._start + timedelta(seconds=self.monotonic())

    async def sleep(self, seconds):
        await self._real.sleep(seconds / self._times)


class WriteSwitch:
    """A write fence that the test opens and closes."""

    def __init__(self):
        self.is_open = True

    def may_write(self):
        return self.is_open


class LeaseLoopHarness:
    """Holds the inputs of the loop and the leaf health that it publishes."""

    def __init__(self, metrics_recorder=None):
        self.metrics_recorder = metrics_recorder
        self.known = LoopInputs()
        self.gate = WriteSwitch()
        self.published = {}
        self.marked = []

    def publish(self, name, value, keys=()):
        if value is None:
            self.published.pop(name, None)
        else:
            self.published[name] = value
        self.marked.extend(keys)

    def health(self, cluster):
        return self.published.get(names.leaf_health(cluster))

    def state(self, cluster):
        found = self.health(cluster)
        return None if found is None else found.state

    def put(self, cluster, kubeconfig, *nodes, **options):
        """A node is a name, or a tuple of the fields of NodeLeaseInput."""
        leased = tuple(
            NodeLeaseInput(*((each, f"uid-of-{each}", True) if isinstance(each, str) else each)) for each in nodes
        )
        self.known.put(cluster, LeaseInput(cluster, kubeconfig, leased, **options))

    def change(self, cluster, **changes):
        self.known.put(cluster, replace(self.known.current[cluster], **changes))

    @asynccontextmanager
    async def running(self, client, clock, connect=connect_by_kubeconfig):
        """Run the loop."""
        stopped = asyncio.Event()
        with self.known.listening() as changed:
            context = LoopContext(
                client=client,
                fence_of=lambda _key: self.gate,
                clock=clock,
                stopped=stopped,
                view=None,
                publish=self.publish,
                changed=changed,
                known=self.known,
                connect=connect,
                metrics_recorder=self.metrics_recorder,
            )
            task = asyncio.create_task(renew(context))
            try:
                yield self
            finally:
                stopped.set()
                await task


async def lease_of(client, node):
    """Return the Lease of a node; None if it does not exist."""
    with suppress(NotFound):
        return await client.get(LEASES, node, LEASE_NAMESPACE)


async def renew_time(client, node):
    found = await lease_of(client, node)
    return None if found is None else found["spec"]["renewTime"]


async def add_node(client, name):
    """Create a node; return its uid."""
    return (await client.create(NODES, {"metadata": {"name": name}}))["metadata"]["uid"]
