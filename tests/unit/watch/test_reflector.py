"""One reflector against scripted responses, under virtual time."""

import asyncio
from itertools import pairwise
from random import Random

import pytest

from nodeyard.client.api import Client
from nodeyard.client.errors import TransportError
from nodeyard.process.clock import settle
from nodeyard.watch.cache import Cache
from nodeyard.watch.reflector import SILENT_SECONDS, STALLED_SECONDS, WATCH_SECONDS, InformerKey, Phase, Reflector

from .builders import (
    NODE_VIEW,
    SILENCE,
    Hold,
    Script,
    added,
    bookmark,
    deleted,
    failure,
    modified,
    node,
    page,
    refusal,
)

TORN = TransportError("torn", may_have_run=True)


class Harness:
    def __init__(self, clock, answers, listener):
        self.clock = clock
        self.script = Script(clock, *answers)
        self.cache = Cache(NODE_VIEW.view)
        self.seen = []
        self.cache.listen(self.see)
        if listener is not None:
            self.cache.listen(listener)
        self.told = 0
        self.informer = Reflector(
            Client(self.script), InformerKey(NODE_VIEW), self.cache, clock, Random(7), on_watch_error=self.tell
        )
        self.task = asyncio.create_task(self.informer.run())

    def tell(self):
        self.told += 1

    def see(self, change):
        self.seen.append((change.old and version(change.old), change.new and version(change.new)))

    @property
    def names(self):
        return {obj.metadata.name: version(obj) for obj in self.cache.all()}

    @property
    def phase(self):
        return self.informer.state.phase

    async def begin(self):
        await settle()
        return self


def version(obj):
    return int(obj.metadata.resource_version)


@pytest.fixture
async def start(clock):
    harnesses = []

    async def make(*answers, listener=None):
        harnesses.append(Harness(clock, answers, listener))
        return await harnesses[-1].begin()

    yield make
    for harness in harnesses:
        harness.task.cancel()
        await asyncio.gather(harness.task, return_exceptions=True)
        assert harness.phase is Phase.STOPPED


async def test_the_list_is_streamed_and_the_same_stream_continues_with_changes(start):
    harness = await start(
        [
            added("a", 1),
            added("b", 2),
            bookmark(5, is_end=True),
            modified("a", 6),
            deleted("b", 7),
            added("c", 8),
            Hold(),
        ]
    )
    assert harness.names == {"a": 6, "c": 8}
    assert harness.phase is Phase.WATCHING
    assert harness.informer.is_synced
    [asked] = harness.script.watches
    assert asked.query["sendInitialEvents"] == "true"
    assert asked.query["resourceVersionMatch"] == "NotOlderThan"
    assert asked.query["allowWatchBookmarks"] == "true"
    assert "resourceVersion" not in asked.query
    assert WATCH_SECONDS[0] <= int(asked.query["timeoutSeconds"]) <= WATCH_SECONDS[1]


async def test_an_incomplete_list_is_not_shown(start):
    hold = Hold()
    harness = await start([added("a", 1), hold])
    assert not harness.informer.is_synced
    assert harness.names == {}
    hold.say(deleted("a", 3), added("b", 4), bookmark(4, is_end=True))
    await settle()
    assert harness.names == {"b": 4}


@pytest.mark.parametrize("refused", [refusal(422), refusal(400), [failure(400, "BadRequest")]])
async def test_a_server_that_does_not_stream_lists_is_asked_for_pages(start, refused):
    harness = await start(refused, page(5, node("a", 1)), [Hold()])
    assert harness.names == {"a": 1}
    assert harness.script.asked[1].query == {"limit": "500"}
    assert harness.script.watches[-1].query["resourceVersion"] == "5"
    assert harness.informer.restarts == 0


async def test_once_refused_never_streamed_again(start):
    harness = await start(refusal(422), page(5), [failure(410, "Expired")], page(9, node("a", 8)), [Hold()])
    assert harness.names == {"a": 8}
    assert [asked.is_watch for asked in harness.script.asked] == [True, False, True, False, True]


async def test_a_list_that_fails_while_it_streams_comes_in_pages_after_a_wait(start, clock):
    harness = await start([added("a", 1), failure(500)], page(5, node("b", 2)), [Hold()])
    assert harness.phase is Phase.WAITING
    await clock.advance(1)
    assert harness.names == {"b": 2}
    assert harness.informer.state.can_stream


async def test_pages_that_break_are_read_again(start, clock):
    harness = await start(refusal(422), TORN, page(5, node("a", 1)), [Hold()])
    await clock.advance(1)
    assert harness.names == {"a": 1}


async def test_a_stream_that_ends_is_no_error_and_continues_from_the_last_version(start):
    harness = await start([bookmark(5, is_end=True), added("a", 6)], [modified("a", 7), bookmark(9)], [Hold()])
    assert harness.names == {"a": 7}
    assert [asked.query.get("resourceVersion") for asked in harness.script.watches] == [None, "6", "9"]
    assert harness.informer.restarts == 0
    assert harness.informer.error == ""


async def test_a_stream_that_keeps_ending_at_once_is_not_asked_in_a_tight_loop(start, clock):
    harness = await start([bookmark(5, is_end=True)], [], [], [Hold()])
    assert len(harness.script.watches) == 2
    assert harness.phase is Phase.WAITING
    await clock.advance(10)
    assert harness.phase is Phase.WATCHING


async def test_a_broken_stream_resumes_from_the_last_version_after_a_wait(start, clock):
    harness = await start([bookmark(5, is_end=True), added("a", 6), TORN], [modified("a", 8), Hold()])
    assert harness.phase is Phase.WAITING
    assert harness.informer.error == "TransportError: torn"
    await clock.advance(1)
    assert harness.names == {"a": 8}
    assert harness.script.watches[-1].query["resourceVersion"] == "6"
    assert harness.informer.error == ""
    assert harness.informer.restarts == 1


async def test_a_truncated_event_ends_the_stream_and_is_delivered_again(start, clock):
    torn = b'{"type":"ADDED","object":{"metadata":{"na'
    harness = await start([bookmark(5, is_end=True), torn], [added("a", 6), Hold()])
    await clock.advance(1)
    assert harness.names == {"a": 6}


async def test_an_event_delivered_twice_is_one_change(start):
    harness = await start(
        [bookmark(5, is_end=True), added("a", 6), added("a", 6), deleted("a", 7), deleted("a", 7), Hold()]
    )
    assert harness.seen == [(None, 6), (6, None)]


async def test_an_expired_version_relists_and_delivers_only_the_difference(start):
    first = [added("stays", 1), added("goes", 2), added("moves", 3), bookmark(5, is_end=True), failure(410, "Expired")]
    again = [added("stays", 1), added("moves", 8), added("comes", 7), bookmark(9, is_end=True), Hold()]
    harness = await start(first, again)
    assert harness.names == {"stays": 1, "moves": 8, "comes": 7}
    assert sorted(harness.seen[3:], key=str) == [(2, None), (3, 8), (None, 7)]
    assert harness.informer.restarts == 1


@pytest.mark.parametrize("refused", [refusal(400), refusal(504, cause="ResourceVersionTooLarge")])
async def test_a_version_the_server_cannot_use_lists_again(start, refused):
    harness = await start([bookmark(900, is_end=True), added("a", 901)], refused, [bookmark(3, is_end=True), Hold()])
    assert harness.names == {}
    assert harness.cache.version == "3"


async def test_a_streamed_list_that_ends_early_comes_in_pages(start, clock):
    harness = await start([added("a", 1)], page(5, node("b", 2)), [Hold()])
    assert harness.informer.error == "EndedTooSoon: the watch ended before the initial list was complete"
    await clock.advance(1)
    assert harness.names == {"b": 2}


async def test_a_silent_watch_is_left_after_its_deadline(start, clock):
    harness = await start([bookmark(5, is_end=True), SILENCE], [added("a", 6), Hold()])
    await clock.advance(69)
    assert len(harness.script.watches) == 1
    await clock.advance(2)
    assert harness.names == {"a": 6}
    assert harness.script.watches[-1].query["resourceVersion"] == "5"


async def test_a_watch_is_stale_from_a_missing_bookmark_until_its_next_event(start, clock):
    harness = await start([bookmark(5, is_end=True), (stream := Hold())])
    await clock.advance(SILENT_SECONDS)
    assert harness.informer.staleness() == ""
    await clock.advance(1)
    assert "has received nothing for more than 65 s" in harness.informer.staleness()
    assert harness.informer.staleness(5) == ""
    await clock.advance(5)
    assert "has received nothing" in harness.informer.staleness(5)
    stream.say(bookmark(6))
    await settle()
    assert harness.informer.staleness() == ""


async def test_a_watch_that_ends_as_it_should_may_be_silent_for_another_minute(start, clock):
    harness = await start([bookmark(5, is_end=True), (stream := Hold())], [Hold()])
    await clock.advance(50)
    stream.end()
    await settle()
    assert len(harness.script.watches) == 2
    await clock.advance(SILENT_SECONDS - 1)
    assert harness.informer.staleness() == ""
    await clock.advance(2)
    assert "has received nothing" in harness.informer.staleness()


async def test_the_end_of_a_silence_is_reported_so_that_the_stale_condition_ends(start, clock):
    harness = await start([bookmark(5, is_end=True), (stream := Hold())])
    await clock.advance(SILENT_SECONDS + 2)
    assert "has received nothing" in harness.informer.staleness()
    assert harness.told == 0
    stream.say(bookmark(6), bookmark(7))
    await settle()
    assert harness.informer.staleness() == ""
    assert harness.told == 1


async def test_a_watch_that_is_broken_is_stale_at_once_and_until_it_runs_again(start, clock):
    harness = await start([bookmark(5, is_end=True), TORN], refusal(500), [bookmark(6), Hold()])
    assert "is failing" in harness.informer.staleness()
    assert harness.informer.staleness(5) == ""
    await clock.advance(0.6)
    assert "is failing" in harness.informer.staleness()
    await clock.advance(5)
    assert harness.informer.staleness() == ""


async def test_a_watch_silent_twice_relists(start, clock):
    harness = await start(
        [added("a", 1), bookmark(5, is_end=True), SILENCE], [SILENCE], [bookmark(3, is_end=True), Hold()]
    )
    await clock.advance(150)
    assert harness.names == {}
    assert harness.cache.version == "3"


async def test_backoff_grows_while_nothing_is_received_and_resets_after(start, clock):
    fails = [refusal(500)] * 5
    harness = await start([bookmark(5, is_end=True), TORN], *fails, [added("a", 6), TORN], [Hold()])
    await clock.advance(60)
    times = [asked.at for asked in harness.script.watches]
    waits = [later - earlier for earlier, later in pairwise(times)]
    for wait, full in zip(waits, (0.5, 1, 2, 4, 8, 16, 0.5), strict=True):
        assert full / 2 <= wait <= full


async def test_retry_after_is_honoured(start, clock):
    harness = await start([bookmark(5, is_end=True), TORN], refusal(429, retry_after=12), [Hold()])
    await clock.advance(30)
    last, before = harness.script.watches[-1].at, harness.script.watches[-2].at
    assert last - before == 12


async def test_a_page_about_maintenance_does_not_end_the_watch_for_an_hour(start, clock):
    harness = await start([bookmark(5, is_end=True), TORN], refusal(503, retry_after=3600), [added("a", 6), Hold()])
    await clock.advance(62)
    assert harness.names == {"a": 6}


async def test_one_malformed_object_is_set_aside_and_the_stream_continues(start):
    bad = {"type": "MODIFIED", "object": {"metadata": {"name": "a", "resourceVersion": "6", "labels": 5}}}
    harness = await start([added("a", 1), bookmark(5, is_end=True), bad, added("b", 7), Hold()])
    assert harness.names == {"a": 1, "b": 7}
    [(key, found)] = harness.cache.malformed.items()
    assert key == ("", "a")
    assert "labels" in found.error
    assert harness.informer.report().malformed == 1


async def test_a_malformed_object_of_the_first_list_leaves_the_others(start):
    bad = {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "1", "labels": 5}}}
    harness = await start([bad, added("b", 2), bookmark(5, is_end=True), modified("a", 6), Hold()])
    assert harness.names == {"a": 6, "b": 2}
    assert harness.cache.malformed == {}


async def test_a_bug_of_ours_does_not_end_the_watch(start, clock):
    def fail_on_b(change):
        if change.new.metadata.name == "b":
            raise ZeroDivisionError("ours")

    harness = await start([bookmark(5, is_end=True), added("b", 6)], [added("c", 7), Hold()], listener=fail_on_b)
    assert harness.informer.error == "ZeroDivisionError: ours"
    await clock.advance(1)
    assert harness.names == {"b": 6, "c": 7}


async def test_a_report_tells_the_age_and_when_it_is_too_old(start, clock):
    hold = Hold()
    harness = await start([added("a", 1), bookmark(5, is_end=True), hold])
    await clock.advance(60)
    report = harness.informer.report()
    assert (report.resource, report.phase, report.objects, report.silence) == ("nodes", "Watching", 1, 60)
    assert not report.is_stalled
    await clock.advance(STALLED_SECONDS)
    assert harness.informer.report().is_stalled
    hold.say(bookmark(6))
    await settle()
    assert not harness.informer.report().is_stalled
