"""The lease loop by itself: briefs are given by hand, findings kept, and what it may write is a switch."""

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.briefs import Brief, LeaseNode
from nodeyard.capabilities.clustertree.leases.loop import renew
from nodeyard.client.errors import NotFound
from nodeyard.client.resources import LEASES, NODES
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.briefs import Briefs
from nodeyard.runtime.loops import LoopContext
from nodeyard.runtime.reaching import reach


class QuickClock:
    """Real time, in which everything is due sooner: a round of ten seconds takes two."""

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


class Switch:
    """A gate."""

    def __init__(self):
        self.is_open = True

    def may_write(self):
        return self.is_open


class Desk:
    """Where briefs lie and findings arrive."""

    def __init__(self, measure=None):
        self.measure = measure
        self.known = Briefs()
        self.gate = Switch()
        self.findings = {}
        self.marked = []

    def publish(self, name, value, keys=()):
        if value is None:
            self.findings.pop(name, None)
        else:
            self.findings[name] = value
        self.marked.extend(keys)

    def finding(self, cluster):
        return self.findings.get(names.finding(cluster))

    def state(self, cluster):
        found = self.finding(cluster)
        return None if found is None else found.state

    def give(self, cluster, kubeconfig, *nodes, **options):
        """Nodes are names, or triples of name, uid and whether it is alive."""
        leased = tuple(
            LeaseNode(*((each, f"uid-of-{each}", True) if isinstance(each, str) else each)) for each in nodes
        )
        self.known.put(cluster, Brief(cluster, kubeconfig, leased, **options))

    def change(self, cluster, **changes):
        self.known.put(cluster, replace(self.known.current[cluster], **changes))

    @asynccontextmanager
    async def keeping(self, client, clock, connect=reach):
        """The loop runs."""
        stopped = asyncio.Event()
        with self.known.listening() as changed:
            context = LoopContext(
                client=client,
                gate_of=lambda _key: self.gate,
                clock=clock,
                stopped=stopped,
                view=None,
                publish=self.publish,
                changed=changed,
                known=self.known,
                connect=connect,
                measure=self.measure,
            )
            task = asyncio.create_task(renew(context))
            try:
                yield self
            finally:
                stopped.set()
                await task


async def lease_of(client, node):
    """None where there is none."""
    with suppress(NotFound):
        return await client.get(LEASES, node, LEASE_NAMESPACE)


async def renew_time(client, node):
    found = await lease_of(client, node)
    return None if found is None else found["spec"]["renewTime"]


async def add_node(client, name):
    """Its uid."""
    return (await client.create(NODES, {"metadata": {"name": name}}))["metadata"]["uid"]
