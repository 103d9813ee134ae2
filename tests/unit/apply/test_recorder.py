"""The event recorder: equal events form a series, lasting states are recorded once, and callers never wait."""

import asyncio
import weakref
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from random import Random

import pytest

from nodeyard.apply import recorder as recording
from nodeyard.apply.recorder import Recorder, StandingEvents
from nodeyard.client.api import Client
from nodeyard.client.resources import EVENTS
from nodeyard.client.transport import Response
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import settle
from nodeyard.runtime.capability import Event

from ...builders.plans import config_ref, node_ref
from .worlds import NoAnswer, status

NODE = node_ref("n1")


@dataclass(frozen=True)
class Told:
    object: ObjectRef = NODE
    type: str = "Normal"
    reason: str = "Claimed"
    message: str = "took n1"


def recorder_of(world, **options):
    return Recorder(Client(world.transport), "tests", instance="pod-1", clock=world.clock, random=Random(1), **options)


@asynccontextmanager
async def running(recorder):
    task = asyncio.ensure_future(recorder.run())
    yield
    await settle()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def events(world, namespace="default"):
    await settle()
    return (await world.client.list(EVENTS, namespace)).items


async def test_an_event_names_object_reason_and_reporter(world):
    recorder = recorder_of(world)
    async with running(recorder):
        recorder.record(Told(node_ref("n1", uid="u-1"), "Warning"))
        (event,) = await events(world)
    assert event["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u-1"}
    assert (event["type"], event["reason"], event["note"]) == ("Warning", "Claimed", "took n1")
    assert (event["reportingController"], event["reportingInstance"]) == ("nodeyard.dev/tests", "pod-1")
    assert event["metadata"]["name"].startswith("n1.")
    assert "series" not in event


async def test_an_event_is_in_the_namespace_of_its_object(world):
    recorder = recorder_of(world)
    recorder.record(Told(config_ref("c", "kube-system")))
    await recorder.drain()
    (event,) = await events(world, "kube-system")
    assert event["regarding"]["namespace"] == "kube-system"


async def test_equal_events_within_ten_minutes_are_counted_on_one(world):
    recorder = recorder_of(world)
    async with running(recorder):
        for _ in range(3):
            recorder.record(Told())
            await world.clock.advance(599)
        (event,) = await events(world)
    assert event["series"] == {"count": 3, "lastObservedTime": "2026-01-01T00:19:58.000000Z"}
    assert event["eventTime"] == "2026-01-01T00:00:00.000000Z"
    assert (world.transport.count("POST"), world.transport.count("PATCH")) == (1, 2)


async def test_after_ten_minutes_of_silence_it_is_a_new_event(world):
    recorder = recorder_of(world)
    async with running(recorder):
        recorder.record(Told())
        await world.clock.advance(601)
        recorder.record(Told())
        assert len(await events(world)) == 2


@pytest.mark.parametrize(
    "other", [Told(node_ref("n2")), Told(type="Warning"), Told(reason="Released"), Told(message="took it")]
)
async def test_events_that_differ_are_not_merged(world, other):
    recorder = recorder_of(world)
    async with running(recorder):
        recorder.record(Told())
        recorder.record(other)
        assert len(await events(world)) == 2


async def test_a_burst_is_written_in_few_requests(world):
    recorder = recorder_of(world)
    for _ in range(100):
        recorder.record(Told())
    async with running(recorder):
        (event,) = await events(world)
    assert event["series"]["count"] == 100
    assert world.transport.count("POST") == 1


async def test_an_event_that_the_server_has_forgotten_is_recreated(world):
    recorder = recorder_of(world)
    async with running(recorder):
        recorder.record(Told())
        (first,) = await events(world)
        await world.client.delete(EVENTS, first["metadata"]["name"], "default")
        await world.clock.advance(60)
        recorder.record(Told())
        (second,) = await events(world)
    assert second["metadata"]["name"] != first["metadata"]["name"]
    assert second["series"]["count"] == 2


async def test_a_server_error_is_retried(world):
    recorder = recorder_of(world)
    world.transport.watch_error["POST"] = [status(503), NoAnswer(after_sending=True)]
    async with running(recorder):
        recorder.record(Told())
        await world.clock.advance(10)
        assert len(await events(world)) == 1
    assert recorder.lost == 0


async def test_an_event_refused_by_the_server_is_dropped_and_the_next_is_recorded(world):
    recorder = recorder_of(world)
    world.transport.watch_error["POST"] = [status(403, "Forbidden", "no")]
    async with running(recorder):
        recorder.record(Told())
        recorder.record(Told(reason="Released"))
        (event,) = await events(world)
    assert event["reason"] == "Released"
    assert recorder.lost == 1


async def test_an_answer_that_is_no_object_loses_one_event_and_not_those_after_it(world):
    recorder = recorder_of(world)
    world.transport.watch_error["POST"] = [Response(200, {}, b"<html>back soon</html>")]
    async with running(recorder):
        recorder.record(Told())
        recorder.record(Told(reason="Released"))
        (event,) = await events(world)
    assert (event["reason"], recorder.lost) == ("Released", 1)


async def test_a_full_queue_drops_and_counts(world):
    recorder = recorder_of(world, queue_size=2)
    for number in range(5):
        recorder.record(Told(message=str(number)))
    assert recorder.lost == 3
    await recorder.drain()
    assert {each["note"] for each in await events(world)} == {"0", "1"}


async def test_an_event_that_is_being_written_when_it_stops_is_left_for_the_drain(world):
    recorder = recorder_of(world)
    world.transport.gate = asyncio.Event()
    async with running(recorder):
        recorder.record(Told())
    world.transport.gate.set()
    await recorder.drain()
    assert [each["note"] for each in await events(world)] == ["took n1"]


async def test_the_series_remembered_are_bounded(world, monkeypatch):
    monkeypatch.setattr(recording, "SERIES_MAX", 2)
    recorder = recorder_of(world)
    for message in ("a", "b", "c", "a"):
        recorder.record(Told(message=message))
    await recorder.drain()
    assert sorted(each["note"] for each in await events(world)) == ["a", "b", "c"]


async def test_an_event_is_forgotten_ten_minutes_after_it_last_happened(world):
    recorder, first = recorder_of(world), Told(message="a")
    kept = weakref.ref(first)
    recorder.record(first)
    await recorder.drain()
    del first
    await world.clock.advance(601)
    recorder.record(Told(message="b"))
    assert kept() is None


async def test_a_long_message_is_cut_to_the_limit_of_the_server(world):
    recorder = recorder_of(world)
    recorder.record(Told(config_ref("c" * 250), message="ä" * 1000))
    await recorder.drain()
    (event,) = await events(world)
    assert len(event["note"].encode()) <= 1024
    assert event["note"].endswith("...")
    assert len(event["metadata"]["name"]) <= 253


REF = ObjectRef(api_version="v1", kind="Node", name="n1", uid="u")
SHORT = Event(REF, "Warning", "Short", "two are missing", is_standing=True)
SHORTER = Event(REF, "Warning", "Short", "three are missing", is_standing=True)


def test_a_standing_event_is_recorded_once():
    standing_events = StandingEvents()
    assert standing_events.new("a", [SHORT]) == [SHORT]
    assert standing_events.new("a", [SHORT]) == []


def test_a_changed_standing_event_is_recorded_again():
    standing_events = StandingEvents()
    standing_events.new("a", [SHORT])
    assert standing_events.new("a", [SHORTER]) == [SHORTER]
    assert standing_events.new("a", [SHORT]) == [SHORT]


def test_a_standing_event_that_ended_and_returns_is_recorded_again():
    standing_events = StandingEvents()
    standing_events.new("a", [SHORT])
    assert standing_events.new("a", []) == []
    assert standing_events.new("a", [SHORT]) == [SHORT]


def test_standing_events_are_kept_by_key_and_forgotten_with_it():
    standing_events = StandingEvents()
    standing_events.new("a", [SHORT])
    assert standing_events.new("b", [SHORT]) == [SHORT]
    standing_events.forget("a")
    assert standing_events.new("a", [SHORT]) == [SHORT]
