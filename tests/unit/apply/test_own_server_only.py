"""Events and statuses are written to the host cluster, also for objects of remote clusters."""

import asyncio
from dataclasses import dataclass
from random import Random

import msgspec

from nodeyard.apply.outcome import Result
from nodeyard.apply.recorder import Recorder
from nodeyard.apply.status import StatusWriter
from nodeyard.client.api import Client
from nodeyard.client.resources import EVENTS
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import StatusWrite

from ...builders.plans import node_ref, pod_ref
from .worlds import lookup

THERE = msgspec.structs.replace(pod_ref("web", "shop", uid="u-1"), cluster="leaf-1")


@dataclass(frozen=True)
class Told:
    object: ObjectRef = THERE
    type: str = "Warning"
    reason: str = "DrainBlocked"
    message: str = "a budget allows no eviction"
    is_standing: bool = False


async def test_an_event_about_an_object_of_a_remote_cluster_names_the_cluster(world):
    recorder = Recorder(Client(world.transport), "tests", instance="pod-1", clock=world.clock, random=Random(1))
    recorder.record(Told())
    await recorder.drain()
    [event] = (await world.client.list(EVENTS, "default")).items
    assert event["note"] == "Pod leaf-1:shop/web: a budget allows no eviction"
    assert event["regarding"] == {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u-1"}
    assert recorder.lost == 0


async def test_a_status_of_an_object_of_a_remote_cluster_is_not_written_to_ours_of_that_name(world):
    await world.node("n1")
    writer = StatusWriter(Client(world.transport), "tests", lookup, clock=world.clock, random=Random(1))
    wanted = StatusWrite(object=msgspec.structs.replace(node_ref("n1"), cluster="leaf-1"), status={"phase": "Running"})
    running = asyncio.ensure_future(writer.write([wanted], lambda _ref: None, may_write=lambda: True))
    (result,) = await world.finish(running)
    assert (result.result, world.transport.count("PATCH")) == (Result.FAILED, 0)
    assert "leaf-1" in result.message
