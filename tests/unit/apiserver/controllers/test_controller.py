"""The loop that all controllers share: a failing key does not delay others."""

import asyncio
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from nodeyard.apiserver.controllers.controller import Controller, service_account
from nodeyard.apiserver.errors import ApiError, modified, not_found
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.store import Store
from nodeyard.process.clock import VirtualClock, settle


class Bench:
    """Minimal fake of a server."""

    def __init__(self):
        self.store, self.registry, self.clock = Store(), Registry(), VirtualClock()

    async def call(self, method, url, body=None, *, user=None, content_type=""):
        return body


class Stumbling(Controller[str]):
    """Controller that fails a given number of times for each key."""

    name = "stumbling-controller"
    user = service_account("stumbling-controller")

    def __init__(self, cluster, failures):
        super().__init__(cluster)
        self.failures = failures
        self.done = []
        self.tried = []

    def observe(self, resource, event):
        self.queue.add(event.stored.key.name)

    async def reconcile(self, key):
        self.tried.append((key, self.clock.monotonic()))
        if self.failures.get(key):
            raise self.failures[key].pop()
        self.done.append(key)
        return None


@pytest.fixture
async def run():
    tasks = []

    def start(failures):
        controller = Stumbling(Bench(), failures)
        tasks.append(asyncio.create_task(controller.run()))
        return controller

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_key_that_fails_does_not_stop_the_others(run):
    controller = run({"bad": [ValueError("no")] * 100})
    for key in ("bad", "good", "better"):
        controller.queue.add(key)
    await settle()
    assert controller.done == ["good", "better"]


async def test_a_key_that_fails_is_tried_again_ever_more_slowly(run):
    controller = run({"bad": [ValueError("no")] * 4})
    controller.queue.add("bad")
    await controller.clock.advance(10)
    assert controller.done == ["bad"]
    assert [moment for _, moment in controller.tried] == pytest.approx([0, 0.05, 0.15, 0.35, 0.75])


async def test_the_pause_grows_to_a_minute_and_no_more(run):
    controller = run({"bad": [ValueError("no")] * 20})
    controller.queue.add("bad")
    await controller.clock.advance(3600)
    moments = [moment for _, moment in controller.tried]
    assert max(after - before for before, after in pairwise(moments)) == pytest.approx(60)
    assert controller.done == ["bad"]


async def test_a_failure_is_logged_once_until_the_key_succeeds(run):
    controller = run({"bad": [ValueError("no")] * 3})
    with capture_logs() as logs:
        controller.queue.add("bad")
        await controller.clock.advance(10)
        controller.failures["bad"] = [ValueError("again")]
        controller.queue.add("bad")
        await controller.clock.advance(10)
    assert [(entry["key"], entry["reason"]) for entry in logs] == [("bad", "no"), ("bad", "again")]


async def test_a_lost_race_is_retried_without_a_log_line(run):
    controller = run({"busy": [modified("", "pods", "busy")]})
    with capture_logs() as logs:
        controller.queue.add("busy")
        await controller.clock.advance(1)
    assert controller.done == ["busy"]
    assert logs == []


async def test_a_deleted_object_needs_no_reconcile(run):
    controller = run({"gone": [not_found("", "pods", "gone")]})
    controller.queue.add("gone")
    await controller.clock.advance(3600)
    assert len(controller.tried) == 1


async def test_a_rejection_is_logged_with_the_message_of_the_server(run):
    controller = run({"refused": [ApiError(403, "Forbidden", "not you")]})
    with capture_logs() as logs:
        controller.queue.add("refused")
        await settle()
    assert [entry["reason"] for entry in logs] == ["not you"]
