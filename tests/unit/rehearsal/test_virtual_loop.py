"""The event loop in virtual time."""

import asyncio
from datetime import UTC, datetime

import pytest

from nodeyard.rehearsal.virtual_loop import LoopClock, Stalled, run

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_day_passes_at_once_and_sleepers_wake_in_order():
    woken = []

    async def sleeper(clock, seconds):
        await clock.sleep(seconds)
        woken.append((seconds, clock.now().hour, clock.monotonic()))

    async def main():
        clock = LoopClock(START)
        await asyncio.gather(*(sleeper(clock, hours * 3600) for hours in (23, 1, 5)))

    run(main())
    assert [each[:2] for each in woken] == [(3600, 1), (18000, 5), (82800, 23)]
    assert woken[-1][2] == pytest.approx(82800)


def test_timeouts_of_asyncio_are_virtual():
    async def main():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(7200):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert run(main()) == pytest.approx(7200)


def test_work_for_threads_runs_inline_and_takes_no_time():
    async def main():
        assert await asyncio.to_thread(lambda: 42) == 42
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 / 0)
        return asyncio.get_running_loop().time()

    assert run(main()) == 0


def test_time_does_not_pass_while_a_task_is_runnable():
    async def main():
        loop = asyncio.get_running_loop()
        timer = asyncio.create_task(asyncio.sleep(0.001))
        for _ in range(10_000):
            await asyncio.sleep(0)
        assert loop.time() == 0
        await timer
        return loop.time()

    assert run(main()) == pytest.approx(0.001)


def test_a_program_that_can_never_go_on_is_an_error():
    async def main():
        await asyncio.Event().wait()

    with pytest.raises(Stalled):
        run(main())
