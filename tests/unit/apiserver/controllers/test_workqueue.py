import asyncio

import pytest

from nodeyard.apiserver.controllers.workqueue import WorkQueue
from nodeyard.process.clock import VirtualClock, settle


@pytest.fixture
async def clock():
    return VirtualClock()


@pytest.fixture
async def queue(clock):
    made = WorkQueue(clock)
    yield made
    made.close()


async def test_keys_are_taken_once_in_the_order_of_their_addition(queue):
    for key in ("a", "b", "a", "c", "b"):
        queue.add(key)
    assert [await queue.get() for _ in range(3)] == ["a", "b", "c"]


async def test_a_key_added_while_it_is_worked_on_comes_again(queue):
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert await queue.get() == "a"


async def test_getting_waits_until_there_is_something(queue):
    getting = asyncio.create_task(queue.get())
    await settle()
    assert not getting.done()
    queue.add("a")
    assert await getting == "a"


async def test_a_delayed_key_is_taken_when_it_is_due(queue, clock):
    queue.add_after("late", 600)
    queue.add_after("soon", 10)
    getting = asyncio.create_task(queue.get())
    await clock.advance(9.9)
    assert not getting.done()
    await clock.advance(0.1)
    assert await getting == "soon"
    getting = asyncio.create_task(queue.get())
    await clock.advance(590)
    assert await getting == "late"


async def test_the_earlier_of_two_moments_counts(queue, clock):
    queue.add_after("a", 100)
    queue.add_after("a", 5)
    queue.add_after("a", 50)
    getting = asyncio.create_task(queue.get())
    await clock.advance(5)
    assert await getting == "a"
    getting = asyncio.create_task(queue.get())
    await clock.advance(1000)
    assert not getting.done()
    getting.cancel()


async def test_now_is_earlier_than_later(queue, clock):
    queue.add_after("a", 5)
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("b")
    await clock.advance(10)
    assert await queue.get() == "b"
    assert not queue._ready


async def test_no_delay_means_now(queue):
    queue.add_after("a", 0)
    assert await queue.get() == "a"


async def test_a_discarded_key_does_not_come(queue, clock):
    queue.add("a")
    queue.add_after("b", 5)
    queue.discard("a")
    queue.discard("b")
    getting = asyncio.create_task(queue.get())
    await clock.advance(10)
    assert not getting.done()
    queue.add("c")
    assert await getting == "c"


async def test_the_queue_is_idle_only_without_waiting_and_running_keys(queue, clock):
    assert queue.is_idle
    queue.add("a")
    assert not queue.is_idle
    await queue.get()
    assert not queue.is_idle
    getting = asyncio.create_task(queue.get())
    await settle()
    assert queue.is_idle
    queue.add_after("b", 5)
    assert queue.is_idle
    await clock.advance(5)
    assert await getting == "b"


async def test_quiet_waits_for_the_worker(queue):
    queue.add("a")
    quiet = asyncio.create_task(queue.quiet())
    await queue.get()
    await settle()
    assert not quiet.done()
    getting = asyncio.create_task(queue.get())
    await asyncio.wait_for(quiet, 1)
    getting.cancel()
