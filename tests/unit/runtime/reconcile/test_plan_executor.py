"""Plans run in one thread in order, and each gets a result."""

from __future__ import annotations

import asyncio
import threading

import pytest

from nodeyard.runtime.reconcile.plan_executor import InlinePlanExecutor, ThreadPlanExecutor


@pytest.fixture
def execute():
    plan_executor = ThreadPlanExecutor("tests")
    yield plan_executor
    plan_executor.close()


@pytest.mark.parametrize("plan_executor", [InlinePlanExecutor, ThreadPlanExecutor])
async def test_each_caller_gets_its_own_result(plan_executor):
    execute = plan_executor("tests")
    assert await asyncio.gather(*(execute(lambda number=number: number * 2) for number in range(50))) == [
        number * 2 for number in range(50)
    ]
    execute.close()


async def test_work_runs_in_one_thread_beside_the_event_loop(execute):
    found = set(await asyncio.gather(*(execute(threading.get_ident) for _ in range(10))))
    assert len(found) == 1
    assert threading.get_ident() not in found


async def test_later_work_is_answered_too(execute):
    assert [await execute(lambda number=number: number) for number in range(3)] == [0, 1, 2]


async def test_an_exception_reaches_its_caller_alone(execute):
    def fail():
        raise ValueError("no plan")

    failed, done = await asyncio.gather(execute(fail), execute(lambda: "a plan"), return_exceptions=True)

    assert isinstance(failed, ValueError)
    assert done == "a plan"


async def test_a_result_does_not_wait_for_longer_work(execute):
    go_on = threading.Event()
    quick = asyncio.ensure_future(execute(lambda: "quick"))
    last = asyncio.ensure_future(execute(go_on.wait))
    try:
        assert await asyncio.wait_for(quick, 10) == "quick"
        assert not last.done()
    finally:
        go_on.set()
    assert await asyncio.wait_for(last, 10)


async def test_cancelled_work_is_not_started(execute):
    begun, go_on, thought = threading.Event(), threading.Event(), []

    def hold():
        begun.set()
        go_on.wait(10)

    holding = asyncio.ensure_future(execute(hold))
    unwanted = asyncio.ensure_future(execute(lambda: thought.append("unwanted")))
    await asyncio.to_thread(begun.wait, 10)
    unwanted.cancel()
    await asyncio.gather(unwanted, return_exceptions=True)
    go_on.set()
    await holding
    await execute(lambda: thought.append("wanted"))
    assert thought == ["wanted"]


async def test_work_after_close_is_cancelled():
    execute = ThreadPlanExecutor("tests")
    execute.close()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(execute(lambda: None), 10)


async def test_work_added_while_the_thread_is_busy_runs(execute):
    begun, go_on = threading.Event(), threading.Event()

    def hold():
        begun.set()
        go_on.wait(10)

    holding = asyncio.ensure_future(execute(hold))
    await asyncio.to_thread(begun.wait, 10)
    others = [asyncio.ensure_future(execute(lambda number=number: number)) for number in range(20)]
    await asyncio.sleep(0)
    go_on.set()

    assert await asyncio.wait_for(asyncio.gather(*others), 10) == list(range(20))
    await holding


async def test_no_work_added_while_the_thread_becomes_idle_is_lost(execute):
    async def ask(number):
        found = []
        for turn in range(200):
            if turn % (number + 2) == 0:
                await asyncio.sleep(0)
            found.append(await execute(lambda turn=turn: turn))
        return found

    answers = await asyncio.wait_for(asyncio.gather(*map(ask, range(8))), 60)

    assert answers == [list(range(200))] * 8


async def test_close_cancels_work_that_has_not_started():
    execute = ThreadPlanExecutor("tests")
    begun, go_on = threading.Event(), threading.Event()

    def hold():
        begun.set()
        return go_on.wait(10)

    holding = asyncio.ensure_future(execute(hold))
    await asyncio.to_thread(begun.wait, 10)
    waiting = asyncio.ensure_future(execute(lambda: None))
    await asyncio.sleep(0)

    execute.close()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 10)
    go_on.set()
    assert await asyncio.wait_for(holding, 10)
