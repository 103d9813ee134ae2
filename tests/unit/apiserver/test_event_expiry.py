"""Events are forgotten an hour after they were last written."""

from __future__ import annotations

import asyncio

import pytest

from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.server import Server
from nodeyard.process.clock import VirtualClock

EVENTS = "/api/v1/namespaces/default/events"
OTHER = "/apis/events.k8s.io/v1/namespaces/default/events"


def event(name: str) -> dict:
    about = {"kind": "Node", "name": "n", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about, "count": 1}


async def names(server: Server, path: str) -> list[str]:
    return [each["metadata"]["name"] for each in (await server.call("GET", path))["items"]]


async def test_an_event_lives_for_an_hour_after_its_last_write():
    clock = VirtualClock()
    server = Server(clock)
    await server.start(())
    for name in ("old", "renewed"):
        await server.call("POST", EVENTS, event(name))
    await clock.advance(1800)
    await server.call("PATCH", f"{EVENTS}/renewed", {"count": 2}, content_type="application/merge-patch+json")
    await clock.advance(1799)
    assert await names(server, OTHER) == ["old", "renewed"]

    await clock.advance(2)

    assert await names(server, OTHER) == ["renewed"]
    with pytest.raises(ApiError) as gone:
        await server.call("GET", f"{EVENTS}/old")
    assert gone.value.code == 404
    await clock.advance(1800)
    assert await names(server, EVENTS) == []
    await server.stop()


async def test_others_are_served_while_thousands_of_events_expire():
    clock = VirtualClock()
    server = Server(clock)
    await server.start(())
    for number in range(3000):
        await server.call("POST", EVENTS, event(f"e{number}"))
    await clock.advance(3601)
    served = 0

    asked = asyncio.create_task(names(server, EVENTS))
    while not asked.done():
        await server.call("GET", "/api/v1/namespaces/default")
        served += 1
        await asyncio.sleep(0)

    assert await asked == []
    assert served > 5
    await server.stop()
