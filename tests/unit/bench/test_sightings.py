"""What another watcher has seen, and who waits for it."""

from __future__ import annotations

import asyncio

import pytest
from bench.sightings import Sightings


async def test_an_object_counts_when_it_is_seen_first():
    found = Sightings()
    found.see("a", 1.0)
    found.see("b", 2.0)
    found.see("a", 3.0)

    assert await found.reach(2) == 2.0


async def test_who_waits_is_woken_by_the_last():
    found = Sightings()
    waiting = asyncio.create_task(found.reach(2))
    await asyncio.sleep(0)
    found.see("a", 1.0)
    found.see("b", 5.0)

    assert await waiting == 5.0


async def test_patience_ends():
    with pytest.raises(TimeoutError):
        await Sightings().reach(1, 0.01)
