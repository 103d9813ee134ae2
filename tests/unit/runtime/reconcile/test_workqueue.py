"""The workqueue under virtual time."""

import asyncio
import sys

import pytest

from nodeyard.process.clock import VirtualClock, settle
from nodeyard.runtime.reconcile.workqueue import Priority, WorkQueue


@pytest.fixture
async def queue(clock: VirtualClock):
    queue = WorkQueue(clock)
    yield queue
    await queue.close()


class Worker:
    """Worker that records when it takes keys, and keeps each until the test releases it."""

    def __init__(self, queue: WorkQueue, clock: VirtualClock, *, holds: bool = False) -> None:
        self.taken: list[tuple[str, float]] = []
        self._queue = queue
        self._clock = clock
        self._holds = holds
        self._task = asyncio.create_task(self._run())

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.taken]

    async def _run(self) -> None:
        while True:
            key = await self._queue.take()
            self.taken.append((key, round(self._clock.monotonic(), 3)))
            if not self._holds:
                self._queue.done(key)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.fixture
async def worker(queue, clock):
    worker = Worker(queue, clock)
    yield worker
    await worker.stop()


@pytest.fixture
async def holding(queue, clock):
    worker = Worker(queue, clock, holds=True)
    yield worker
    await worker.stop()


async def test_a_key_with_a_minimum_interval_is_taken_at_once_and_then_once_per_interval(queue, worker, clock):
    for _ in range(30):
        queue.add("a", min_interval=1)
        await clock.advance(0.1)
    assert worker.taken == [("a", 0.05), ("a", 1.05), ("a", 2.05)]


async def test_an_urgent_event_does_not_wait_for_the_minimum_interval(queue, worker, clock):
    queue.add("a", min_interval=1)
    await clock.advance(0.2)
    queue.add("a", min_interval=1)
    queue.add("a")
    await clock.advance(0.2)
    assert worker.taken == [("a", 0.05), ("a", 0.25)]


async def test_a_key_that_has_been_idle_for_long_is_taken_at_once(queue, worker, clock):
    queue.add("a", min_interval=1)
    await clock.advance(5)
    queue.add("a", min_interval=1)
    await clock.advance(0.1)
    assert worker.taken == [("a", 0.05), ("a", 5.05)]


async def test_a_forgotten_key_starts_anew(queue, worker, clock):
    queue.add("a", min_interval=1)
    await clock.advance(0.1)
    queue.forget("a")
    queue.add("a", min_interval=1)
    await clock.advance(0.1)
    assert worker.taken == [("a", 0.05), ("a", 0.15)]


async def test_events_of_one_window_are_taken_once_when_it_closes(queue, worker, clock):
    queue.add("a")
    await clock.advance(0.04)
    queue.add("a")
    assert worker.taken == []
    await clock.advance(1)
    assert worker.taken == [("a", 0.05)]


async def test_an_event_after_the_window_is_taken_again(queue, worker, clock):
    queue.add("a")
    await clock.advance(0.06)
    queue.add("a")
    await clock.advance(1)
    assert worker.taken == [("a", 0.05), ("a", 0.11)]


async def test_the_earliest_requeue_time_wins(queue, worker, clock):
    queue.add_after("a", 60)
    queue.add_after("a", 10)
    queue.add_after("a", 30)
    await clock.advance(120)
    assert worker.taken == [("a", 10.0)]


async def test_an_event_does_not_wait_for_a_later_retry(queue, worker, clock):
    queue.add_after("a", 60)
    await clock.advance(1)
    queue.add("a")
    await clock.advance(120)
    assert worker.taken == [("a", 1.05)]


async def test_a_retry_that_is_over_is_taken_at_once(queue, worker, clock):
    queue.add_after("a", 0)
    await settle()
    assert worker.taken == [("a", 0.0)]


async def test_delayed_keys_are_taken_in_order(queue, worker, clock):
    for key, seconds in (("c", 3), ("a", 1), ("b", 2), ("d", 600)):
        queue.add_after(key, seconds)
    await clock.advance(10)
    assert worker.taken == [("a", 1.0), ("b", 2.0), ("c", 3.0)]
    await clock.advance(600)
    assert worker.keys[-1] == "d"


async def test_a_key_is_with_one_worker_at_a_time_and_dirty_runs_again(queue, clock, holding):
    other = Worker(queue, clock, holds=True)
    queue.add("a")
    await clock.advance(1)
    queue.add("a")
    await clock.advance(1)
    assert holding.keys + other.keys == ["a"]
    queue.done("a")
    await settle()
    assert holding.keys + other.keys == ["a", "a"]
    queue.done("a")
    await clock.advance(10)
    assert holding.keys + other.keys == ["a", "a"]
    await other.stop()


async def test_different_keys_are_worked_on_at_once(queue, clock, holding):
    other = Worker(queue, clock, holds=True)
    queue.add("a")
    queue.add("b")
    await clock.advance(1)
    assert sorted(holding.keys + other.keys) == ["a", "b"]
    assert not queue.is_idle
    await other.stop()


async def test_fresh_events_go_before_resyncs(queue, clock):
    for key in ("r1", "r2", "r3"):
        queue.add(key, Priority.RESYNC)
    queue.add("fresh")
    await clock.advance(1)
    assert [await queue.take() for _ in range(4)] == ["fresh", "r1", "r2", "r3"]


async def test_an_event_on_a_key_that_waits_for_resync_moves_it_ahead(queue, clock):
    for key in ("r1", "r2", "r3"):
        queue.add(key, Priority.RESYNC)
    await clock.advance(1)
    queue.add("r3")
    assert [await queue.take() for _ in range(3)] == ["r3", "r1", "r2"]
    assert queue.waiting == 0


async def test_depth_counts_only_ready_keys(queue, clock):
    queue.add("a")
    queue.add_after("b", 100)
    assert (queue.depth, queue.waiting) == (0, 2)
    await clock.advance(1)
    assert (queue.depth, queue.waiting) == (1, 2)


async def test_how_long_a_key_was_due_is_returned(clock):
    waits: list[float] = []
    queue = WorkQueue(clock, on_take=waits.append)
    queue.add("a")
    await clock.advance(0.25)
    await queue.take()
    assert waits == [pytest.approx(0.2)]
    await queue.close()


async def test_a_worker_that_is_stopped_while_it_waits_loses_no_key(queue, clock, worker):
    waiting = asyncio.create_task(queue.take())
    await settle()
    await worker.stop()
    queue.add("a")
    await clock.advance(1)
    assert await waiting == "a"


async def test_a_worker_woken_and_stopped_in_the_same_moment_passes_the_key_on(queue, clock):
    first = asyncio.create_task(queue.take())
    second = asyncio.create_task(queue.take())
    await settle()
    queue.add_after("a", 0)
    first.cancel()
    assert await second == "a"
    await asyncio.gather(first, return_exceptions=True)


async def test_an_add_after_close_is_not_waited_for(clock):
    queue = WorkQueue(clock)
    await queue.close()
    queue.add("late")
    assert queue.waiting == 0


@pytest.fixture
def restless_threads():
    """Threads are switched as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


async def test_depth_can_be_read_on_another_thread_while_keys_are_added(queue, restless_threads):
    for number in range(1000):
        queue.add_after(f"known-{number}", 0.0)
    asking = asyncio.get_running_loop().run_in_executor(None, lambda: [queue.depth for _ in range(5)])
    number = 0
    while not asking.done():
        queue.add_after(f"new-{number}", 0.0)
        number += 1
        await asyncio.sleep(0)
    depths = await asking
    assert depths == sorted(depths)
    assert depths[0] >= 1000


async def test_a_key_planned_often_with_a_far_wake_up_takes_no_more_room_each_time(queue, clock, worker):
    for number in range(3):
        queue.add_after(f"far-{number}", 500 + number)
    busy = "-".join(("busy", "key"))
    for _ in range(1000):
        queue.add_after(busy, 900)
        queue.add(busy)
        await clock.advance(0.1)
        worker.taken.clear()
    assert sys.getrefcount(busy) < 100
    queue.add_after(busy, 400)
    await clock.advance(900)
    assert worker.keys == [busy, "far-0", "far-1", "far-2"]


class SuddenClock(VirtualClock):
    """Clock that can advance without waking sleepers."""

    passed = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.passed


async def test_a_due_key_survives_a_cleanup():
    clock = SuddenClock()
    queue = WorkQueue(clock)
    queue.add_after("due", 1)
    clock.passed = 2
    for number in range(100):
        queue.add_after("far", 900 - number)
    assert await asyncio.wait_for(queue.take(), 1) == "due"
    await queue.close()
