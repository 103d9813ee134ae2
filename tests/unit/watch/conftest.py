"""Fixtures of watch tests."""

import asyncio

import pytest

from nodeyard.apiserver.server import Server

from .stages import Stage


@pytest.fixture
async def stage(clock):
    server = Server(clock, seed=1)
    await server.start(())
    stage = Stage(clock, server)
    yield stage
    await stage.stop()
    await server.stop()
    assert [task for task in asyncio.all_tasks() if "informer" in task.get_name()] == []
