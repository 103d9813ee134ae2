"""Spares on the whole loop, in process under virtual time."""

import asyncio
from contextlib import asynccontextmanager
from random import Random

import pytest
from tests.builders.managers import FaultyTransport, cut

from nodeyard.apiserver.server import Server
from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.capabilities.spares.watched import TEMPLATES
from nodeyard.client.resources import NODES
from nodeyard.kube.names import ZONE
from nodeyard.runtime.crds import install
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.reconcile.plan_executor import InlinePlanExecutor
from nodeyard.runtime.settings import Settings
from nodeyard.sim.embedded import connect

SPARE = {"key": names.SPARE_TAINT, "value": "true", "effect": "NoSchedule"}


@pytest.fixture
async def server(clock):
    server = Server(clock, seed=1)
    await server.start(())
    installing = asyncio.create_task(install(connect(server), [SPARES], clock))
    await clock.advance(5)
    await installing
    yield server
    await server.stop()


@pytest.fixture
def client(server):
    return connect(server)


@asynccontextmanager
async def operator(server, clock, identity="one", **settings):
    client = connect(server)
    tap = client.transport = FaultyTransport(client.transport)
    chosen = Settings(identity=identity, **settings)
    manager = Manager(client, [SPARES], chosen, clock=clock, random=Random(1), plan_executor=InlinePlanExecutor)
    async with manager.running():
        yield tap


async def add_spares(client, count, zone="a", first=0):
    for number in range(first, first + count):
        node = {
            "metadata": {"name": f"spare-{zone}-{number}", "labels": {ZONE: zone, "size": "large"}},
            "spec": {"taints": [SPARE]},
        }
        await client.create(NODES, node)


async def add_template(client, name, nodes, **spec):
    template = {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name},
        "spec": {
            "nodes": nodes,
            "selector": {"matchLabels": {"size": "large"}},
            "template": {"metadata": {"labels": {"role": name}}},
            **spec,
        },
    }
    await client.create(TEMPLATES, template)


async def owned(client, template):
    page = await client.list(NODES, labels=f"{names.TEMPLATE_LABEL}={template}")
    return page.items


async def test_spares_are_configured_with_one_write_each(server, client, clock):
    await add_spares(client, 4, "a")
    await add_spares(client, 4, "b")
    await add_template(client, "web", 6)
    async with operator(server, clock) as tap:
        await clock.advance(10)
        nodes = await owned(client, "web")
        assert len(nodes) == 6
        zones = [node["metadata"]["labels"][ZONE] for node in nodes]
        assert (zones.count("a"), zones.count("b")) == (3, 3)
        assert {node["metadata"]["labels"]["role"] for node in nodes} == {"web"}
        for node in nodes:
            assert SPARE["key"] not in [taint["key"] for taint in node["spec"].get("taints", [])]
        written = tap.written("/nodes/")
        assert len(written) == len(set(written))


async def test_a_new_spare_is_claimed_at_once(server, client, clock):
    await add_template(client, "web", 1)
    async with operator(server, clock):
        await clock.advance(10)
        await add_spares(client, 1)
        await clock.advance(0.2)
        assert len(await owned(client, "web")) == 1


async def test_status_counts_the_nodes_and_a_second_pass_writes_nothing(server, client, clock):
    await add_spares(client, 3)
    await add_template(client, "web", 2)
    async with operator(server, clock) as tap:
        await clock.advance(10)
        template = await client.get(TEMPLATES.decoded_as(dict), "web")
        assert template["status"]["currentNodes"] == 2
        tap.writes.clear()
        await clock.advance(1300)
        assert {path for path in tap.written("/") if "/leases" not in path} == set()


async def test_two_replicas_and_a_kill_give_no_node_twice(server, client, clock):
    await add_spares(client, 10)
    await add_template(client, "web", 4)
    await add_template(client, "db", 4, priority=5)
    async with operator(server, clock, "one") as one:

        async def stall(_method, path):
            if len(one.written("/nodes/")) >= 3 and "/nodes/" in path:
                await asyncio.Event().wait()

        one.before = stall
        async with operator(server, clock, "two"):
            await clock.advance(5)
            one.fail = cut
            await clock.advance(60)
            assert len(await owned(client, "web")) == 4
            assert len(await owned(client, "db")) == 4
            passing = asyncio.create_task(clock.advance(60))
        one.fail = lambda _method, _path: None
    await passing
