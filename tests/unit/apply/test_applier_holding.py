"""A lost Lease, a newer plan or a stop ends an applier. Writes in flight finish, the rest is held."""

import asyncio

from nodeyard.apply.action_graph import NOT_ALLOWED, REPLACED
from nodeyard.apply.outcome import Result
from nodeyard.client.flow_control import FlowControl
from nodeyard.client.resources import NODES
from nodeyard.plan.model import Verb
from nodeyard.process.clock import settle

from ...builders.plans import action, node_ref, planned
from .worlds import NoAnswer, patch, status


def step(id, *after, node="n1", label="ours"):
    return action(id, object=node_ref(node), after=after), patch({"metadata": {"labels": {label: id}}})


def results(outcome):
    return [each.result for each in outcome.results]


async def test_nothing_is_sent_without_the_lease(world):
    await world.node("n1")
    outcome = await world.apply(planned(step("a"), step("b", "a")), may_write=lambda: False)
    assert results(outcome) == [Result.HELD, Result.HELD]
    assert {each.message for each in outcome.results} == {NOT_ALLOWED}
    assert world.transport.sent == []


async def test_a_lost_lease_holds_unsent_actions_and_requests_in_flight_finish(world):
    for number in range(6):
        await world.node(f"n{number}")
    world.transport.flow_control = FlowControl(2)
    world.transport.gate = asyncio.Event()
    leads = True
    steps = [step(f"a{number}", node=f"n{number}") for number in range(6)]
    running = asyncio.ensure_future(world.applier.apply(planned(*steps), may_write=lambda: leads))
    await settle()
    leads = False
    world.transport.gate.set()
    outcome = await running
    assert results(outcome) == [Result.DONE] * 2 + [Result.HELD] * 4
    assert world.transport.count("PATCH") == 2


async def test_a_queued_write_is_not_sent_after_the_lease_is_lost(world):
    await world.node("n1")
    world.transport.turn = asyncio.Event()
    leads = True
    running = asyncio.ensure_future(world.applier.apply(planned(step("a"), step("b", "a")), may_write=lambda: leads))
    await settle()
    leads = False
    world.transport.turn.set()
    outcome = await running
    assert results(outcome) == [Result.HELD, Result.HELD]
    assert {each.message for each in outcome.results} == {NOT_ALLOWED}
    assert world.transport.sent == []


async def test_a_waiting_write_whose_plan_is_replaced_is_not_sent(world):
    await world.node("n1")
    world.transport.turn = asyncio.Event()
    fallback_versions = asyncio.ensure_future(world.applier.apply(planned(step("old")), may_write=lambda: True))
    await settle()
    newer = asyncio.ensure_future(world.applier.apply(planned(step("new")), may_write=lambda: True))
    await settle()
    world.transport.turn.set()
    assert [each.message for each in (await fallback_versions).results] == [REPLACED]
    assert (await newer).is_complete
    assert world.transport.count("PATCH") == 1


async def test_a_lease_lost_during_the_ownership_check_stops_the_write(world):
    leads = True

    def lose(_method, _path):
        nonlocal leads
        leads = False

    world.transport.before = lose
    write = patch({"metadata": {"labels": {"ours": "1"}}}, is_first=True)
    plan = planned((action("a", Verb.APPLY, node_ref("n1")), write))
    outcome = await world.apply(plan, may_write=lambda: leads)
    assert results(outcome) == [Result.HELD]
    assert [method for method, _, _ in world.transport.sent] == ["GET"]


async def test_a_lost_response_is_confirmed_even_after_the_lease_is_lost(world):
    await world.node("n1")
    leads = True

    def lose(_method, _path):
        nonlocal leads
        leads = False

    world.transport.before = lose
    world.transport.watch_error["PATCH"] = [NoAnswer(after_sending=True)]
    outcome = await world.apply(planned(step("a")), may_write=lambda: leads)
    assert results(outcome) == [Result.DONE]
    assert [method for method, _, _ in world.transport.sent] == ["PATCH", "GET"]


async def test_a_lease_lost_during_a_pause_is_noticed_before_the_next_attempt(world):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(503, retry_after=2)]
    leads = True
    running = asyncio.ensure_future(world.applier.apply(planned(step("a")), may_write=lambda: leads))
    await settle()
    leads = False
    outcome = await world.finish(running)
    assert results(outcome) == [Result.HELD]
    assert world.transport.count("PATCH") == 1


async def test_a_newer_plan_replaces_what_the_older_has_not_sent(world):
    for number in range(3):
        await world.node(f"n{number}")
    world.transport.flow_control = FlowControl(1)
    world.transport.gate = asyncio.Event()
    fallback_versions = asyncio.ensure_future(
        world.applier.apply(planned(*(step(f"old{n}", node=f"n{n}") for n in range(3))), may_write=lambda: True)
    )
    await settle()
    newer = asyncio.ensure_future(
        world.applier.apply(planned(*(step(f"new{n}", node=f"n{n}") for n in range(3))), may_write=lambda: True)
    )
    await settle()
    world.transport.gate.set()
    assert results(await fallback_versions) == [Result.DONE, Result.HELD, Result.HELD]
    assert (await fallback_versions).results[1].message == REPLACED
    assert (await newer).is_complete
    labels = [each["metadata"]["labels"]["ours"] for each in (await world.client.list(NODES)).items]
    assert labels == ["new0", "new1", "new2"]
    assert world.transport.count("PATCH") == 4


async def test_the_middle_one_of_three_plans_sends_nothing(world):
    await world.node("n1")
    world.transport.gate = asyncio.Event()
    running = []
    for name in ("first", "second", "third"):
        running.append(asyncio.ensure_future(world.applier.apply(planned(step(name)), may_write=lambda: True)))
        await settle()
    world.transport.gate.set()
    first, second, third = await asyncio.gather(*running)
    assert [results(each) for each in (first, second, third)] == [[Result.DONE], [Result.HELD], [Result.DONE]]


async def test_plans_of_different_keys_do_not_disturb_each_other(world):
    for number in range(2):
        await world.node(f"n{number}")
    outcomes = await asyncio.gather(
        *(world.applier.apply(planned(step("a", node=f"n{n}"), key=f"k{n}"), may_write=lambda: True) for n in range(2))
    )
    assert all(each.is_complete for each in outcomes)


async def test_a_newer_plan_does_not_wait_out_the_olders_pause(world):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(503, retry_after=4)]
    fallback_versions = asyncio.ensure_future(world.applier.apply(planned(step("old")), may_write=lambda: True))
    await settle()
    newer = await world.applier.apply(planned(step("new")), may_write=lambda: True)
    assert newer.is_complete
    assert results(await fallback_versions) == [Result.HELD]
    assert world.clock.monotonic() == 0


async def test_a_cancelled_key_sends_nothing_more(world):
    for number in range(2):
        await world.node(f"n{number}")
    world.transport.flow_control = FlowControl(1)
    world.transport.gate = asyncio.Event()
    running = asyncio.ensure_future(
        world.applier.apply(planned(step("a", node="n0"), step("b", node="n1")), may_write=lambda: True)
    )
    await settle()
    world.applier.cancel("another key")
    world.applier.cancel("nodetemplates")
    world.transport.gate.set()
    assert results(await running) == [Result.DONE, Result.HELD]


async def test_after_a_cancellation_the_key_can_be_applied_again(world):
    await world.node("n1")
    world.applier.cancel()
    assert (await world.apply(planned(step("a")))).is_complete
