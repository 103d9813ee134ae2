"""Managers on the embedded server in process, under virtual time."""

import asyncio
import dataclasses
from contextlib import asynccontextmanager
from random import Random

from tests.builders import labels

from nodeyard.apiserver.server import Server
from nodeyard.client.errors import TransportError
from nodeyard.client.resources import EVENTS, NODES
from nodeyard.runtime.crds import install
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.reconcile.plan_executor import InlinePlanExecutor
from nodeyard.runtime.settings import Settings
from nodeyard.sim.embedded import connect


class FaultyTransport:
    """Transport that records writes, and fails or hangs where a test tells it to."""

    def __init__(self, transport):
        self._transport = transport
        self.writes = []
        self.fail = lambda method, path: None
        self.before = None
        self.refuses_streams = False
        self.silences = None
        """Part of the path of watches that deliver no more events."""
        self.streams = []

    async def send(self, request):
        method, path = request.method, request.path
        error = self.fail(method, path)
        if error is not None:
            raise error
        if method != "GET":
            if self.before is not None:
                await self.before(method, path)
            self.writes.append((method, path))
        return await self._transport.send(request)

    def stream(self, request):
        if self.refuses_streams:
            raise TransportError("no streams", may_have_run=False)
        self.streams.append(request.path)
        return self._streaming(request)

    @asynccontextmanager
    async def _streaming(self, request):
        async def heard():
            async for chunk in stream.chunks:
                if self.silences is None or self.silences not in request.path:
                    yield chunk

        async with self._transport.stream(request) as stream:
            yield dataclasses.replace(stream, chunks=heard())

    async def close(self):
        await self._transport.close()

    def written(self, part):
        return [path for method, path in self.writes if part in path]


def cut(_method, _path):
    return TransportError("cut", may_have_run=False)


@asynccontextmanager
async def empty_world(clock):
    """Start a world without objects."""
    server = Server(clock, seed=1)
    await server.start(())
    world = World(server, clock)
    await world.prepare()
    yield world
    await server.stop()


class World:
    """A server with the CRD of the sixth capability, and an admin client."""

    def __init__(self, server, clock):
        self.server = server
        self.clock = clock
        self.client = connect(server)

    async def prepare(self):
        installing = asyncio.create_task(install(self.client, [labels.LABELS], self.clock))
        await self.clock.advance(5)
        await installing

    @asynccontextmanager
    async def manager(
        self, identity="one", *, capability=labels.LABELS, more=(), plan_executor=InlinePlanExecutor, **settings
    ):
        client = connect(self.server)
        tap = client.transport = FaultyTransport(client.transport)
        manager = Manager(
            client,
            [capability, *more],
            Settings(identity=identity, **settings),
            clock=self.clock,
            random=Random(identity),
            plan_executor=plan_executor,
        )
        manager.tap = tap
        async with manager.running():
            yield manager

    async def add_rule(self, name, team, **options):
        return await self.client.create(labels.RULES, labels.rule(name, team, **options))

    async def add_nodes(self, rule, *names, **extra):
        for name in names:
            await self.client.create(NODES, labels.node(name, rule, **extra))

    async def teams(self):
        """Return the team label of every node."""
        page = await self.client.list(NODES)
        return {each["metadata"]["name"]: each["metadata"]["labels"].get(labels.TEAM) for each in page.items}

    async def rule(self, name):
        return await self.client.get(labels.RULES, name)

    async def events(self, reason):
        page = await self.client.list(EVENTS)
        return [each for each in page.items if each["reason"] == reason]

    async def annotate(self, name, **annotations):
        patch = {"metadata": {"annotations": {f"nodeyard.dev/{key}": value for key, value in annotations.items()}}}
        await self.client.patch(labels.RULES, name, patch)
