"""Actions, statuses and Events are separate flows, so that none waits for all requests of another."""

import asyncio
from random import Random

from nodeyard.apply.recorder import Recorder
from nodeyard.apply.status import StatusWriter
from nodeyard.client.api import Client
from nodeyard.client.resources import EVENTS
from nodeyard.runtime.capability import Event, StatusWrite

from ...builders.plans import action, node_ref, planned
from .worlds import lookup, patch


async def test_actions_statuses_and_events_share_the_bound_fairly(world):
    await world.node("n1")
    client = Client(world.transport)
    recorder = Recorder(client, "tests", instance="pod-1", clock=world.clock, random=Random(1))
    writer = StatusWriter(client, "tests", lookup, clock=world.clock, random=Random(1))
    wanted = StatusWrite(object=node_ref("n1"), status={"phase": "Running"})

    await world.apply(planned((action("n1"), patch())))
    running = asyncio.ensure_future(writer.write([wanted], lambda _ref: None, may_write=lambda: True))
    await world.finish(running)
    recorder.record(Event(node_ref("n1"), "Normal", "Labelled", "Labelled node n1"))
    await recorder.drain()

    assert len((await world.client.list(EVENTS, "default")).items) == 1
    assert world.transport.flows == ["nodeyard-tests", "nodeyard-tests/status", "nodeyard-tests/events"]
