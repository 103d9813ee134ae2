"""A stop ends in time, whatever the server does."""

import asyncio

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.client.resources import LEASES
from nodeyard.kube.names import NAMESPACE

from ...builders.managers import World


@pytest.fixture
async def world(clock):
    server = Server(clock, seed=1)
    await server.start(())
    world = World(server, clock)
    await world.prepare()
    yield world
    await server.stop()


async def test_events_that_the_server_does_not_take_keep_the_lease_from_nobody(world, clock):
    async def hang(_method, path):
        if "/events" in path:
            await clock.sleep(3600)

    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    async with asyncio.timeout(10), world.manager() as manager:
        manager.tap.before = hang
        await clock.advance(5)
        assert await world.teams() == {"n1": "blue"}
        passing = asyncio.create_task(clock.advance(8))
    await passing
    lease = await world.client.get(LEASES, "nodeyard-labels", NAMESPACE)
    assert lease["spec"]["holderIdentity"] == ""
