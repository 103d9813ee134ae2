"""Managers with sharded keys: each plans, connects to and runs loops for its own keys. Under virtual time."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest
from tests.builders import labels
from tests.builders.managers import cut, empty_world
from tests.builders.remote_clusters import RemoteClusters, leaves, node, secret

from nodeyard.apiserver.server import Server
from nodeyard.client.resources import LEASES, NODES, SECRETS
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime.capability import Background
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.reconcile.plan_executor import InlinePlanExecutor
from nodeyard.runtime.settings import Settings
from nodeyard.sim.embedded import connect

RULES = tuple(f"rule-{number}" for number in range(8))
UNELECTED = "nodeyard-unelected-labels"
SHARDED = replace(labels.LABELS, is_sharded=True)


@pytest.fixture
async def world(clock):
    async with empty_world(clock) as world:
        for rule in RULES:
            await world.add_rule(rule, "blue")
            await world.add_nodes(rule, f"{rule}-n1", f"{rule}-n2")
        yield world


def has(manager):
    controller = manager.controllers[0]
    return {rule for rule in RULES if controller.fence_of(rule).may_write()}


def written_by(manager):
    """Return the rules whose nodes it has written."""
    return {path.rpartition("/")[2].rpartition("-")[0] for path in manager.tap.written("/nodes/")}


async def wait_until_sharded(clock, *managers):
    for _ in range(90):
        await clock.advance(1)
        if all(has(each) for each in managers) and sum(len(has(each)) for each in managers) == len(RULES):
            return
    raise AssertionError(f"not sharded: {[sorted(has(each)) for each in managers]}")


async def test_each_replica_plans_only_its_keys(world, clock):
    async with world.manager("one", capability=SHARDED) as one, world.manager("two", capability=SHARDED) as two:
        await wait_until_sharded(clock, one, two)
        await clock.advance(30)
        assert set((await world.teams()).values()) == {"blue"}
        for each in (one, two):
            each.tap.writes.clear()
        for rule in RULES:
            await world.client.patch(labels.RULES, rule, {"spec": {"team": "red"}})
        await clock.advance(5)
        assert set((await world.teams()).values()) == {"red"}
        assert (written_by(one), written_by(two)) == (has(one), has(two))
        assert len(one.tap.written("/nodes/")) + len(two.tap.written("/nodes/")) == 2 * len(RULES)


async def test_keys_of_a_replica_without_network_move_and_no_key_has_two_writers(world, clock):
    async with world.manager("one", capability=SHARDED) as one, world.manager("two", capability=SHARDED) as two:
        await wait_until_sharded(clock, one, two)
        two.tap.fail = cut
        for rule in RULES:
            await world.client.patch(labels.RULES, rule, {"spec": {"team": "red"}})
        for _ in range(80):
            await clock.advance(0.25)
            assert not has(one) & has(two)
        assert set((await world.teams()).values()) == {"red"}
        assert has(one) == set(RULES)


async def test_a_stop_hands_all_keys_over_at_once(world, clock):
    async with world.manager("one", capability=SHARDED) as one, AsyncExitStack() as stack:
        two = await stack.enter_async_context(world.manager("two", capability=SHARDED))
        await wait_until_sharded(clock, one, two)
        stopping = asyncio.create_task(stack.aclose())
        await clock.advance(4)
        await stopping
        assert has(one) == set(RULES)
    leases = (await world.client.list(LEASES, NAMESPACE)).items
    assert {each["spec"].get("holderIdentity") for each in leases} == {""}
    assert not [each for each in leases if "replica" in each["metadata"]["name"]]


async def test_a_deleted_key_loses_its_lease_and_a_new_key_is_planned_soon(world, clock):
    async with world.manager("one", capability=SHARDED) as one:
        await clock.advance(5)
        assert has(one) == set(RULES)
        await world.client.delete(labels.RULES, RULES[0])
        await world.add_rule("new", "green")
        await world.add_nodes("new", "new-n1")
        await clock.advance(2)
        assert (await world.teams())["new-n1"] == "green"
        names = {each["metadata"]["name"] for each in (await world.client.list(LEASES, NAMESPACE)).items}
        assert f"nodeyard-labels-{RULES[0]}" not in names
        assert "nodeyard-labels-new" in names


async def test_without_election_all_keys_are_ours_and_no_election_lease_is_touched(world, clock):
    async with world.manager("one", capability=SHARDED, leader_elect=False):
        await clock.advance(2)
        assert set((await world.teams()).values()) == {"blue"}
        names = {each["metadata"]["name"] for each in (await world.client.list(LEASES, NAMESPACE)).items}
        assert names == {UNELECTED}


async def test_the_number_of_held_keys_is_a_metric_and_lost_keys_lose_their_series(world, clock):
    async with world.manager("one", capability=SHARDED) as one:
        await clock.advance(5)
        registry = one.metrics.registry
        assert registry.get_sample_value("nodeyard_keys_held", {"capability": "labels"}) == len(RULES)
        assert registry.get_sample_value("nodeyard_leader", {"capability": "labels"}) == 1
        one.tap.fail = cut
        await clock.advance(12)
        assert registry.get_sample_value("nodeyard_keys_held", {"capability": "labels"}) == 0
        assert registry.get_sample_value("nodeyard_leader", {"capability": "labels"}) == 0
        one.tap.fail = lambda _method, _path: None


async def test_a_capability_without_sharding_has_no_such_metric(world, clock):
    async with world.manager("one") as one:
        await clock.advance(5)
        assert one.metrics.registry.get_sample_value("nodeyard_keys_held", {"capability": "labels"}) is None


async def test_a_key_is_handed_over_after_its_writes_in_flight(world, clock):
    """Otherwise the answer to the one could come after the first write of the other."""
    async with world.manager("one", capability=SHARDED) as one:
        await clock.advance(5)
        sent, answered = [], []

        async def slow(_method, path):
            if "/nodes/" in path:
                sent.append(path)
                await clock.sleep(8)
                answered.append(path)

        async with world.manager("two", capability=SHARDED) as two:
            await clock.advance(9)
            one.tap.before = slow
            for rule in RULES:
                await world.client.patch(labels.RULES, rule, {"spec": {"team": "red"}})
            for _ in range(120):
                await clock.advance(0.5)
                pending = {path.rpartition("/")[2].rpartition("-")[0] for path in set(sent) - set(answered)}
                assert not pending & has(two)
            assert has(two)
            assert set((await world.teams()).values()) == {"red"}


# loops


async def test_loops_get_the_input_and_the_fence_of_each_owned_key(world, clock):
    seen = {}

    def looping(identity):
        async def loop(context):
            while not context.stopped.is_set():
                context.changed.clear()
                open_keys = {key for key in context.inputs if context.fence_of(key).may_write()}
                seen[identity] = (set(context.inputs), open_keys)
                waits = [asyncio.ensure_future(each.wait()) for each in (context.changed, context.stopped)]
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                for each in waits:
                    each.cancel()

        return replace(SHARDED, background=Background((loop,), lambda snapshot, _now: snapshot.rule.spec.team))

    async with world.manager("one", capability=looping("one")) as one:
        await clock.advance(5)
        assert seen["one"] == (set(RULES), set(RULES))
        async with world.manager("two", capability=looping("two")) as two:
            await wait_until_sharded(clock, one, two)
            await clock.advance(1)
            assert seen["one"] == (has(one), has(one))
            assert seen["two"] == (has(two), has(two))


# remote clusters


@pytest.fixture
async def remotes(clock):
    remotes = RemoteClusters(clock)
    yield remotes
    await remotes.stop()


async def test_only_the_holder_of_a_key_connects_to_its_cluster(clock, remotes):
    server = Server(clock, seed=2)
    await server.start(())
    client = connect(server)
    names = tuple(f"leaf-{number}" for number in range(6))
    await remotes.add(*names)
    for name in names:
        await remotes.leaves[name].client.create(NODES, node(f"{name}-n"))
        await client.create(SECRETS, secret(name, "g", f"{name} first"))
    async with manager(server, clock, remotes, "one") as one:
        await clock.advance(5)
        assert connected(one, names) == set(names)
        async with manager(server, clock, remotes, "two") as two:
            for _ in range(60):
                await clock.advance(1)
            assert connected(one, names) | connected(two, names) == set(names)
            assert connected(one, names) & connected(two, names) == set()
            assert connected(two, names)
        await clock.advance(5)
        assert connected(one, names) == set(names)
        said = await client.server_version()
        assert {one.controllers[0].view.cluster(name).version for name in names} == {said["gitVersion"]}
    await server.stop()


def connected(manager, names):
    view = manager.controllers[0].view
    return {name for name in names if view.cluster(name).is_connected}


@asynccontextmanager
async def manager(server, clock, remotes, identity):
    made = Manager(
        connect(server),
        [replace(leaves("g"), is_sharded=True)],
        Settings(identity=identity),
        clock=clock,
        plan_executor=InlinePlanExecutor,
        connect=remotes.connect,
    )
    async with made.running():
        yield made
