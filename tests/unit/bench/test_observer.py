"""The observer notes when objects first meet a condition."""

from __future__ import annotations

import asyncio

import pytest
from bench.observer import Observer


async def test_only_the_first_sight_of_an_object_counts():
    observer = Observer()
    observer.see("a", 1.0)
    observer.see("b", 2.0)
    observer.see("a", 3.0)

    assert await observer.wait_for(2) == 2.0


async def test_a_waiter_is_woken_by_the_last_object():
    observer = Observer()
    waiting = asyncio.create_task(observer.wait_for(2))
    await asyncio.sleep(0)
    observer.see("a", 1.0)
    observer.see("b", 5.0)

    assert await waiting == 5.0


async def test_waiting_times_out():
    with pytest.raises(TimeoutError):
        await Observer().wait_for(1, 0.01)
