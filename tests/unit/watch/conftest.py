"""Fixtures of watch tests."""

import asyncio

import pytest

from nodeyard.apiserver.server import Server

from .harness import Harness


@pytest.fixture
async def harness(clock):
    server = Server(clock, seed=1)
    await server.start(())
    harness = Harness(clock, server)
    yield harness
    await harness.stop()
    await server.stop()
    assert [task for task in asyncio.all_tasks() if "informer" in task.get_name()] == []
