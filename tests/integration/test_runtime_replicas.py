"""Two replicas: stops, kills and restarts."""

import asyncio
import dataclasses
from contextlib import AsyncExitStack

import pytest
from tests.builders import labels
from tests.builders.managers import cut, empty_world

from nodeyard.client.resources import LEASES, NODES
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime.capability import Background

UNELECTED = "nodeyard-unelected-labels"


@pytest.fixture
async def world(clock):
    async with empty_world(clock) as world:
        yield world


def leads(manager):
    return manager.controllers[0].fence.may_write()


async def test_one_of_two_replicas_writes_and_the_other_keeps_its_caches_warm(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1", "n2")
    async with world.manager("one") as one, world.manager("two") as two:
        await clock.advance(10)
        assert await world.teams() == {"n1": "blue", "n2": "blue"}
        leader, follower = (one, two) if leads(one) else (two, one)
        assert len(leader.tap.written("/nodes/")) == 2
        assert follower.tap.written("/nodes/") == []
        assert len(follower.controllers[0].view.all("Node")) == 2


async def test_a_stopped_leader_is_replaced_within_seconds(world, clock):
    await world.add_rule("a", "blue")
    async with AsyncExitStack() as first:
        one = await first.enter_async_context(world.manager("one"))
        await clock.advance(5)
        assert leads(one)
        async with world.manager("two") as two:
            await clock.advance(5)
            assert not leads(two)
            await first.aclose()
            await clock.advance(3)
            assert leads(two)
            await world.add_nodes("a", "n1")
            await clock.advance(1)
            assert await world.teams() == {"n1": "blue"}


async def test_a_leader_that_is_cut_off_midway_is_replaced_and_writes_nothing_more(world, clock):
    await world.add_rule("a", "blue")
    async with world.manager("one") as one:
        await clock.advance(5)
        async with world.manager("two") as two:
            await clock.advance(5)
            one.tap.fail = cut
            await world.add_nodes("a", "n1")
            for _ in range(200):
                await clock.advance(0.2)
                assert not (leads(one) and leads(two))
            assert leads(two)
            assert await world.teams() == {"n1": "blue"}
            one.tap.fail = lambda _method, _path: None
            one.tap.writes.clear()
            await world.client.patch(labels.RULES, "a", {"spec": {"team": "red"}})
            await clock.advance(30)
            assert one.tap.written("/nodes/") == []
            assert await world.teams() == {"n1": "red"}


async def test_no_two_replicas_write_the_same_node_while_leadership_moves(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", *(f"n{number}" for number in range(20)))
    async with world.manager("one") as one, world.manager("two") as two:
        for round in range(6):
            first, second = (one, two) if round % 2 else (two, one)
            first.tap.fail = cut
            await world.client.patch(labels.RULES, "a", {"spec": {"team": f"team{round}"}})
            await clock.advance(40)
            assert set((await world.teams()).values()) == {f"team{round}"}
            first.tap.fail = lambda _method, _path: None
            assert second is not first


async def test_work_that_was_killed_between_two_writes_is_finished_by_the_next_process(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", *(f"n{number}" for number in range(10)))
    async with world.manager("one", grace=0.0) as one:
        written = 0

        async def stall(_method, path):
            nonlocal written
            if "/nodes/" not in path:
                return
            written += 1
            if written > 4:
                await asyncio.Event().wait()

        one.tap.before = stall
        await clock.advance(5)
        teams = list((await world.teams()).values())
        assert (teams.count("blue"), teams.count(None)) == (4, 6)
        stopping = asyncio.create_task(clock.advance(5))
    await stopping
    async with world.manager("two") as two:
        await clock.advance(20)
        assert set((await world.teams()).values()) == {"blue"}
        assert len(two.tap.written("/nodes/")) == 6


async def test_a_stop_finishes_work_in_flight_and_releases_the_lease(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    async with world.manager("one") as one:
        is_sent = asyncio.Event()

        async def slow(_method, path):
            if "/nodes/" in path:
                is_sent.set()
                await clock.sleep(3)

        one.tap.before = slow
        await clock.advance(1)
        assert is_sent.is_set()
        assert await world.teams() == {"n1": None}
        passing = asyncio.create_task(clock.advance(6))
    await passing
    assert await world.teams() == {"n1": "blue"}
    lease = await world.client.get(LEASES, "nodeyard-labels", NAMESPACE)
    assert lease["spec"]["holderIdentity"] == ""


async def test_a_restart_writes_nothing_again(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    async with world.manager("one"):
        await clock.advance(5)
    async with world.manager("two") as two:
        await clock.advance(30)
        assert two.tap.written("/nodes/") == []
        assert two.tap.written("/labelrules/") == []


async def test_without_election_it_writes_at_once_and_touches_no_lease_of_an_election(world, clock):
    await world.add_rule("a", "blue")
    await world.add_nodes("a", "n1")
    async with world.manager("one", leader_elect=False):
        await clock.advance(2)
        assert await world.teams() == {"n1": "blue"}
        names = {each["metadata"]["name"] for each in (await world.client.list(LEASES, NAMESPACE)).items}
        assert names == {UNELECTED}


async def test_a_concurrent_writer_on_every_node_loses_nothing_and_blocks_nothing(world, clock):
    await world.add_rule("a", "blue")
    names = [f"n{number}" for number in range(10)]
    await world.add_nodes("a", *names)
    async with world.manager("one") as one:

        async def interfere(method, path):
            if method == "PATCH" and "/nodes/" in path and interfering:
                name = path.rpartition("/")[2]
                await world.client.patch(NODES, name, {"metadata": {"annotations": {"other": interfering.pop()}}})

        interfering = [str(number) for number in range(25)]
        one.tap.before = interfere
        await clock.advance(30)
        assert set((await world.teams()).values()) == {"blue"}
        assert interfering == []


async def test_a_loop_of_a_capability_runs_until_the_stop(world, clock):
    seen = []

    async def loop(context):
        seen.append(context.fence_of("a").may_write())
        await context.stopped.wait()
        seen.append("stopped")

    async with world.manager(capability=dataclasses.replace(labels.LABELS, background=Background((loop,)))):
        await clock.advance(5)
    assert seen[-1] == "stopped"


async def test_events_that_the_server_rejects_do_not_delay_the_release_of_the_lease(world, clock):
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
