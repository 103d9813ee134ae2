"""Order of writes, and the number in flight."""

import asyncio

import pytest

from nodeyard.apply.outcome import Result
from nodeyard.client.flow_control import FlowControl
from nodeyard.client.resources import NODES
from nodeyard.process.clock import settle

from ...builders.plans import action, node_ref, planned
from .worlds import patch, status


def results(outcome):
    return {each.action.id: each.result for each in outcome.results}


def step(id, *after, node="n1"):
    return action(id, object=node_ref(node), after=after), patch({"metadata": {"labels": {id: "1"}}})


def sent(world):
    return [next(iter(body["metadata"]["labels"])) for method, _, body in world.transport.sent if method == "PATCH"]


async def test_an_action_starts_when_all_it_comes_after_are_done(world):
    await world.node("n1")
    outcome = await world.apply(planned(step("d", "b", "c"), step("b", "a"), step("c", "a"), step("a")))
    assert outcome.is_complete
    assert [each.action.id for each in outcome.results] == ["d", "b", "c", "a"]
    assert sent(world) == ["a", "b", "c", "d"]


async def test_dependents_of_a_failed_action_are_skipped_with_a_reason(world):
    await world.node("n1")
    outcome = await world.apply(
        planned(step("lost", node="gone"), step("next", "lost"), step("last", "next"), step("free"))
    )
    assert results(outcome) == {
        "lost": Result.CONFLICT,
        "next": Result.SKIPPED,
        "last": Result.SKIPPED,
        "free": Result.DONE,
    }
    assert outcome.of("last").message == "depends on Patch Node gone: Conflict"
    assert sent(world) == ["lost", "free"]


async def test_actions_after_an_unknown_one_or_themselves_are_skipped(world):
    await world.node("n1")
    outcome = await world.apply(planned(step("a", "nobody"), step("b", "c"), step("c", "b"), step("d", "a"), step("e")))
    assert results(outcome) == {
        "a": Result.SKIPPED,
        "b": Result.SKIPPED,
        "c": Result.SKIPPED,
        "d": Result.SKIPPED,
        "e": Result.DONE,
    }
    assert outcome.of("a").message == "depends on nobody, which is not in the plan"
    assert outcome.of("b").message == "depends on itself"


async def test_two_actions_of_one_id_are_a_mistake_of_the_planner(world):
    with pytest.raises(ValueError, match="same id"):
        await world.apply(planned(step("a"), step("a")))


async def test_no_more_than_the_bound_are_in_flight_over_all_keys(world):
    for number in range(20):
        await world.node(f"n{number}")
    world.transport.flow_control = FlowControl(3)
    world.transport.gate = asyncio.Event()
    plans = [planned(*(step(f"a{n}", node=f"n{n}") for n in range(half, half + 10)), key=str(half)) for half in (0, 10)]
    running = asyncio.gather(*(world.applier.apply(each, may_write=lambda: True) for each in plans))
    await settle()
    assert world.transport.in_flight == 3
    world.transport.gate.set()
    outcomes = await running
    assert all(each.is_complete for each in outcomes)
    assert world.transport.most_in_flight == 3


async def test_one_that_waits_for_the_server_holds_up_no_other(world):
    for number in range(4):
        await world.node(f"n{number}")
    world.transport.watch_error["PATCH"] = [status(503, retry_after=3)]
    world.transport.flow_control = FlowControl(2)
    running = asyncio.ensure_future(
        world.applier.apply(planned(*(step(f"a{n}", node=f"n{n}") for n in range(4))), may_write=lambda: True)
    )
    await settle()
    labelled = [each for each in (await world.client.list(NODES)).items if each["metadata"].get("labels")]
    assert len(labelled) == 3
    assert (await world.finish(running)).is_complete
