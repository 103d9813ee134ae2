"""Operators over TLS on a real clock, with the sixth capability and short leases."""

import asyncio
import itertools
import time
from contextlib import asynccontextmanager

from tests.builders import labels

from nodeyard.app.operator import Operation, operating
from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import NODES
from nodeyard.runtime.leader.election import Timing
from nodeyard.runtime.settings import Settings

SHORT = Timing(duration=4, margin=1.5, interval=0.4, deadline=1.0)

_numbers = itertools.count(1)


async def until(condition, what, timeout=20.0):
    """Await the condition again until it is true; return its value."""
    deadline = time.monotonic() + timeout
    while True:
        answer = await condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {timeout:g} s: {what} (last answer: {answer!r})"
        await asyncio.sleep(0.05)


@asynccontextmanager
async def operator(kubeconfig, identity="one", *, capability=labels.LABELS, beside=(), install_crds=True, **options):
    """Run what an operator process runs, in this process. `beside` are further capabilities."""
    settings = Settings(identity=identity, lease=options.pop("lease", SHORT), **options.pop("settings", {}))
    capabilities = [capability, *beside]
    operation = Operation(load_config(kubeconfig), capabilities, settings, install_crds=install_crds, **options)
    async with operating(operation) as running:
        yield running


def leads(running):
    return running.manager.controllers[0].fence.may_write()


class Fleet:
    """Nodes and rules of one test on a shared server; deleted after the test."""

    def __init__(self, client):
        self.client = client
        self.prefix = f"labels-{next(_numbers)}"
        self._nodes = []
        self._rules = []

    def name(self, word):
        return f"{self.prefix}-{word}"

    async def add_rule(self, word, team, **options):
        self._rules.append(self.name(word))
        await self.client.create(labels.RULES, labels.rule(self.name(word), team, **options))

    async def add_nodes(self, rule, count):
        for number in range(count):
            name = self.name(f"{rule}-{len(self._nodes)}-{number}")
            self._nodes.append(name)
            await self.client.create(NODES, labels.node(name, self.name(rule)))

    async def change(self, word, **spec):
        await self.client.patch(labels.RULES, self.name(word), {"spec": spec})

    async def rule(self, word):
        return await self.client.get(labels.RULES, self.name(word))

    async def teams(self):
        page = await self.client.list(NODES, labels=labels.RULE)
        mine = [each["metadata"] for each in page.items if each["metadata"]["name"] in self._nodes]
        return [each["labels"].get(labels.TEAM) for each in mine]

    async def are_all(self, team, timeout=20.0):
        async def are():
            found = await self.teams()
            return len(found) == len(self._nodes) and set(found) == {team}

        await until(are, f"all {len(self._nodes)} nodes are {team}", timeout)

    async def close(self):
        for resource, names in ((NODES, self._nodes), (labels.RULES, self._rules)):
            for name in names:
                try:
                    await self.client.delete(resource, name)
                except NotFound:
                    continue


@asynccontextmanager
async def fleet(kubeconfig):
    client = Client(HttpTransport(load_config(kubeconfig)))
    fleet = Fleet(client)
    try:
        yield fleet
    finally:
        await fleet.close()
        await client.close()
