"""Requests in flight are bounded, and flows take turns."""

import asyncio

import pytest

from nodeyard.client.flow_control import FlowControl
from nodeyard.process.clock import settle


class Sent:
    """Requests that keep their slot until the test ends them, in the order in which they got it."""

    def __init__(self, in_flight):
        self.flow_control = FlowControl(in_flight)
        self.order = []
        self._ends = {}

    def send(self, flow, name=""):
        name = name or flow
        self._ends[name] = asyncio.Event()
        return asyncio.create_task(self._hold(flow, name))

    async def _hold(self, flow, name):
        await self.flow_control.acquire(flow)
        try:
            self.order.append(name)
            await self._ends[name].wait()
        finally:
            self.flow_control.release()

    async def end(self, name):
        self._ends[name].set()
        await settle()


@pytest.fixture
def sent():
    return Sent(1)


async def test_no_more_than_the_bound_are_in_flight():
    sent = Sent(2)
    for name in "abc":
        sent.send("flow", name)
    await settle()
    assert sent.order == ["a", "b"]
    await sent.end("b")
    assert sent.order == ["a", "b", "c"]


async def test_a_thousand_requests_of_one_flow_delay_another_flow_by_one():
    sent = Sent(1)
    for number in range(1000):
        sent.send("spares", f"w{number}")
    sent.send("admission")
    await settle()
    for name in ("w0", "w1", "admission"):
        await sent.end(name)
    assert sent.order == ["w0", "w1", "admission", "w2"]


async def test_flows_take_turns_and_each_keeps_its_order(sent):
    for flow, name in (("a", "a0"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2"), ("c", "c1")):
        sent.send(flow, name)
    await settle()
    for name in ("a0", "a1", "b1", "c1", "a2", "b2"):
        await sent.end(name)
    assert sent.order == ["a0", "a1", "b1", "c1", "a2", "b2"]


async def test_a_request_cancelled_while_it_waits_is_passed_over(sent):
    sent.send("a", "first")
    await settle()
    cancelled = sent.send("a", "cancelled")
    sent.send("b", "last")
    await settle()
    cancelled.cancel()
    await sent.end("first")
    assert sent.order == ["first", "last"]


async def test_a_request_cancelled_just_when_its_turn_has_come_passes_it_on(sent):
    await sent.flow_control.acquire("a")
    second = sent.send("a", "second")
    sent.send("a", "third")
    await settle()
    sent.flow_control.release()
    second.cancel()
    await settle()
    assert sent.order == ["third"]


async def test_after_cancellations_the_whole_bound_is_free_again():
    sent = Sent(2)
    tasks = [sent.send("a", f"w{number}") for number in range(6)]
    await settle()
    for task in tasks:
        task.cancel()
    await settle()
    sent.order.clear()
    for name in ("x", "y", "z"):
        sent.send("b", name)
    await settle()
    assert sent.order == ["x", "y"]
