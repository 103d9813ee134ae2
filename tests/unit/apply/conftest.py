"""A started world for every test that asks for one."""

import pytest

from .worlds import World


@pytest.fixture
async def world():
    made = World()
    await made.server.start(controllers=())
    yield made
    await made.server.stop()
