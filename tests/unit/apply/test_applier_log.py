"""Logs of actions: one line when an action is sent, none for held ones."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from nodeyard.apply import applier
from nodeyard.process.logs import get_logger

from ...builders.plans import action, planned
from .worlds import patch, status


@pytest.fixture
def acting(monkeypatch):
    """Yield the objects of the log lines `acting`."""
    monkeypatch.setattr(applier, "log", get_logger("applier"))
    with capture_logs() as lines:
        yield lambda: [line["object"] for line in lines if line["event"] == "action sent"]


async def test_a_write_is_logged_once_however_often_it_is_retried(world, acting):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(500, "InternalError")]

    await world.apply(planned((action("n1"), patch())))

    assert acting() == ["Node n1"]


async def test_a_held_action_is_not_logged_as_done(world, acting):
    await world.node("n1")

    await world.apply(planned((action("n1"), patch())), may_write=lambda: False)

    assert acting() == []


async def test_a_dry_run_acts_on_nothing(world, acting):
    await world.node("n1")

    await world.apply(planned((action("n1"), patch())), dry_run=True)

    assert acting() == []
