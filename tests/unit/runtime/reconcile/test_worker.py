"""Workers under virtual time."""

import asyncio
from random import Random

import pytest

from nodeyard.process.clock import settle
from nodeyard.runtime.reconcile.result import Ending, ReconcileResult
from nodeyard.runtime.reconcile.worker import Workers
from nodeyard.runtime.reconcile.workqueue import WorkQueue


class Passes:
    """Fake reconciler that records passes and returns given results."""

    def __init__(self, clock):
        self._clock = clock
        self.begun = []
        self.ended = []
        self.result = ReconcileResult(Ending.SETTLED)
        self.takes = 0.0

    async def __call__(self, key):
        self.begun.append(round(self._clock.monotonic(), 2))
        if self.takes:
            await self._clock.sleep(self.takes)
        self.ended.append(key)
        return self.result


@pytest.fixture
def passes(clock):
    return Passes(clock)


@pytest.fixture
async def queue(clock):
    queue = WorkQueue(clock)
    yield queue
    await queue.close()


@pytest.fixture
async def workers(queue, passes, clock):
    workers = Workers(queue, passes, Random(1))
    workers.start(2)
    yield workers
    stopping = asyncio.create_task(workers.stop(clock, 0.1))
    await clock.advance(1)
    await stopping


async def test_a_finished_key_is_not_processed_again(queue, workers, passes, clock):
    queue.add("a")
    await clock.advance(3600)
    assert passes.ended == ["a"]


async def test_a_failed_key_is_tried_again_less_and_less_often(queue, workers, passes, clock):
    passes.result = ReconcileResult(Ending.FAILED)
    queue.add("a")
    await clock.advance(600)
    gaps = [later - earlier for earlier, later in zip(passes.begun, passes.begun[1:], strict=False)]
    assert gaps[0] <= 0.1
    assert 30 <= gaps[-1] <= 60
    assert 10 <= len(passes.begun) <= 30


async def test_the_retry_after_of_the_server_is_honoured(queue, workers, passes, clock):
    passes.result = ReconcileResult(Ending.FAILED, retry_after=20)
    queue.add("a")
    await clock.advance(50)
    assert passes.begun == [0.05, 20.05, 40.05]


async def test_a_wake_up_arrives_in_time(queue, workers, passes, clock):
    passes.result = ReconcileResult(Ending.SETTLED, requeue_after=100)
    queue.add("a")
    await clock.advance(250)
    assert passes.begun == [0.05, 100.05, 200.05]


async def test_a_denied_key_is_not_retried_hot(queue, workers, passes, clock):
    passes.result = ReconcileResult(Ending.DENIED, requeue_after=300)
    queue.add("a")
    await clock.advance(5)
    assert 3 <= len(passes.ended) <= 5
    await clock.advance(600)
    before = len(passes.ended)
    await clock.advance(600)
    assert 10 <= len(passes.ended) - before <= 20
    queue.add("a")
    passes.result = ReconcileResult(Ending.SETTLED)
    await clock.advance(1)
    passes.result = ReconcileResult(Ending.DENIED, requeue_after=300)
    queue.add("a")
    before = len(passes.ended)
    await clock.advance(5)
    assert 3 <= len(passes.ended) - before <= 5


async def test_aborted_passes_are_tried_again_and_the_workers_live_on(queue, workers, passes, clock):
    passes.takes = 10
    queue.add("a")
    await clock.advance(1)
    await workers.abort()
    assert passes.ended == []
    passes.takes = 0
    await clock.advance(10)
    assert passes.ended == ["a"]


async def test_a_pass_that_is_aborted_before_it_has_begun_is_tried_again_too(queue, workers, passes, clock):
    queue.add_after("a", 0)
    await asyncio.sleep(0)
    assert not queue.is_idle
    assert passes.begun == []
    await workers.abort()
    await clock.advance(10)
    assert passes.ended == ["a"]


async def test_stopping_waits_for_the_pass_and_takes_no_other(queue, passes, clock):
    workers = Workers(queue, passes, Random(1))
    workers.start(1)
    passes.takes = 5
    queue.add("a")
    queue.add("b")
    await clock.advance(1)
    stopping = asyncio.create_task(workers.stop(clock, 20))
    await settle()
    assert not stopping.done()
    await clock.advance(10)
    await stopping
    assert passes.ended == ["a"]


async def test_a_stop_waits_no_longer_than_its_grace(queue, passes, clock):
    workers = Workers(queue, passes, Random(1))
    workers.start(1)
    passes.takes = 500
    queue.add("a")
    await clock.advance(1)
    stopping = asyncio.create_task(workers.stop(clock, 20))
    await clock.advance(21)
    assert stopping.done()
    assert passes.ended == []
