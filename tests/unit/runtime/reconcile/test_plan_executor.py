"""What is thought about in another thread: handed over together, answered in time, and never left waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest

from nodeyard.runtime.reconcile.plan_executor import InlinePlanExecutor, ThreadPlanExecutor


@pytest.fixture
def think():
    plan_executor = ThreadPlanExecutor("tests")
    yield plan_executor
    plan_executor.close()


@pytest.mark.parametrize("plan_executor", [InlinePlanExecutor, ThreadPlanExecutor])
async def test_each_gets_its_own_result(plan_executor):
    think = plan_executor("tests")
    assert await asyncio.gather(*(think(lambda number=number: number * 2) for number in range(50))) == [
        number * 2 for number in range(50)
    ]
    think.close()


async def test_it_happens_in_one_thread_that_is_not_the_event_loops(think):
    found = set(await asyncio.gather(*(think(threading.get_ident) for _ in range(10))))
    assert len(found) == 1
    assert threading.get_ident() not in found


async def test_what_is_handed_over_later_is_answered_too(think):
    assert [await think(lambda number=number: number) for number in range(3)] == [0, 1, 2]


async def test_a_failure_is_told_to_whoever_asked_and_to_nobody_else(think):
    def fail():
        raise ValueError("no plan")

    failed, done = await asyncio.gather(think(fail), think(lambda: "a plan"), return_exceptions=True)

    assert isinstance(failed, ValueError)
    assert done == "a plan"


async def test_what_is_done_does_not_wait_for_what_takes_long(think):
    go_on = threading.Event()
    quick = asyncio.ensure_future(think(lambda: "quick"))
    last = asyncio.ensure_future(think(go_on.wait))
    try:
        assert await asyncio.wait_for(quick, 10) == "quick"
        assert not last.done()
    finally:
        go_on.set()
    assert await asyncio.wait_for(last, 10)


async def test_what_nobody_waits_for_any_more_is_not_thought_about(think):
    begun, go_on, thought = threading.Event(), threading.Event(), []

    def hold():
        begun.set()
        go_on.wait(10)

    holding = asyncio.ensure_future(think(hold))
    unwanted = asyncio.ensure_future(think(lambda: thought.append("unwanted")))
    await asyncio.to_thread(begun.wait, 10)
    unwanted.cancel()
    await asyncio.gather(unwanted, return_exceptions=True)
    go_on.set()
    await holding
    await think(lambda: thought.append("wanted"))
    assert thought == ["wanted"]


async def test_whoever_asks_after_it_was_closed_does_not_wait_for_ever():
    think = ThreadPlanExecutor("tests")
    think.close()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(think(lambda: None), 10)


async def test_what_is_handed_over_while_it_is_at_work_is_taken_up_too(think):
    begun, go_on = threading.Event(), threading.Event()

    def hold():
        begun.set()
        go_on.wait(10)

    holding = asyncio.ensure_future(think(hold))
    await asyncio.to_thread(begun.wait, 10)
    others = [asyncio.ensure_future(think(lambda number=number: number)) for number in range(20)]
    await asyncio.sleep(0)
    go_on.set()

    assert await asyncio.wait_for(asyncio.gather(*others), 10) == list(range(20))
    await holding


async def test_nothing_is_lost_however_hand_overs_and_the_end_of_work_meet(think):
    async def ask(number):
        found = []
        for turn in range(200):
            if turn % (number + 2) == 0:
                await asyncio.sleep(0)
            found.append(await think(lambda turn=turn: turn))
        return found

    answers = await asyncio.wait_for(asyncio.gather(*map(ask, range(8))), 60)

    assert answers == [list(range(200))] * 8


async def test_what_was_not_begun_when_it_is_closed_is_cancelled():
    think = ThreadPlanExecutor("tests")
    begun, go_on = threading.Event(), threading.Event()

    def hold():
        begun.set()
        return go_on.wait(10)

    holding = asyncio.ensure_future(think(hold))
    await asyncio.to_thread(begun.wait, 10)
    waiting = asyncio.ensure_future(think(lambda: None))
    await asyncio.sleep(0)

    think.close()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 10)
    go_on.set()
    assert await asyncio.wait_for(holding, 10)
