"""The feed's lists and backlog, and the history of an hour."""

import json

import pytest

from nodeyard.dashboard.feed import BACKLOG, Feed
from nodeyard.dashboard.history import History
from nodeyard.dashboard.tiles import Row
from nodeyard.dashboard.wire import LISTED, OperatorInfo
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.surface import Attention, Contact, Leaf, Places, Severity


@pytest.fixture
def feed(clock):
    return Feed(clock)


def row(name, state="spare"):
    return Row(name, "", "", "", "", "", "", state, "", None, None)


def shortage(name, severity=Severity.WARNING):
    ref = ObjectRef(api_version="v1", kind="Node", name=name)
    return Attention(kind="Shortage", severity=severity, object=ref, reason="NoSpare", message="none")


def running(capability):
    return [OperatorInfo(capability=capability, state="Running")]


def body(event, visible=None):
    return json.loads(event.encode(visible).split(b"data: ", 1)[1])


def test_an_equal_list_is_no_event(feed):
    feed.publish("operators", "spares", running("spares"))
    seen = feed.seq
    feed.publish("operators", "spares", running("spares"))
    feed.publish("attention", "spares", [])
    assert feed.seq == seen


def test_sources_of_one_capability_do_not_replace_each_other(feed):
    feed.publish("attention", "spares", [shortage("a")])
    feed.publish("attention", "spares", [shortage("b", Severity.CRITICAL)], by="operators")
    assert [each.object.name for each in feed.snapshot(None)["attention"]] == ["b", "a"]
    feed.publish("attention", "spares", [], by="operators")
    assert [each.object.name for each in feed.snapshot(None)["attention"]] == ["a"]


def test_a_viewer_gets_the_parts_of_visible_capabilities(feed):
    feed.publish("attention", "spares", [shortage("a")])
    feed.publish("attention", "pools", [shortage("b")])
    (event,) = feed.since(feed.seq - 1)
    assert [each["object"]["name"] for each in body(event)["attention"]] == ["a", "b"]
    assert [each["object"]["name"] for each in body(event, frozenset({"pools"}))["attention"]] == ["b"]
    assert body(event, frozenset())["attention"] == []


def test_a_long_list_is_cut_and_counted(feed):
    feed.publish("attention", "spares", [shortage(f"n{number}") for number in range(LISTED + 1)])
    snapshot = feed.snapshot(None)
    assert len(snapshot["attention"]) == LISTED
    assert snapshot["totals"] == {"attention": LISTED + 1}


def test_places_of_all_capabilities_are_joined(feed):
    def leaf(name):
        return Places(leaves=(Leaf(name=name, capability="trees", contact=Contact(state="Connected")),))

    feed.publish("places", "a", leaf("one"))
    feed.publish("places", "b", leaf("two"))
    assert [each.name for each in feed.snapshot(None)["places"].leaves] == ["one", "two"]
    assert [each.name for each in feed.snapshot(frozenset("b"))["places"].leaves] == ["two"]


def test_a_stream_that_resumes_gets_the_last_list_only(feed):
    feed.publish_nodes([row("n1")], [])
    seen = feed.seq
    for number in range(50):
        feed.publish("operators", "spares", [OperatorInfo(capability="spares", state=f"{number}")])
    feed.publish_nodes([row("n2")], [])
    assert [(event.name) for event in feed.since(seen)] == ["operators", "nodes"]
    assert body(feed.since(seen)[0])["operators"][0]["state"] == "49"


def test_the_backlog_is_bounded(feed):
    first = feed.seq
    for number in range(BACKLOG + 1):
        feed.publish_nodes([row(f"n{number}")], [])
    assert feed.since(first) is None
    assert len(feed.since(first + 1)) == BACKLOG
    assert feed.since(feed.seq) == []
    assert feed.since(feed.seq + 1) is None


async def test_a_later_process_has_later_events(clock):
    before = Feed(clock)
    before.publish_nodes([row("n1")], [])
    await clock.advance(1)
    assert Feed(clock).since(before.seq) is None


def test_the_history_has_every_change_since_its_start():
    history = History(100.0)
    history.start([row("n1"), row("n2")], 100.0)
    history.record(200.0, [row("n1", "claimed")], [])
    history.record(300.0, [], ["n2"])
    read = history.read(400.0)
    assert (read["from"], read["to"]) == (100.0, 400.0)
    assert {each.name: each.state for each in read["rows"]} == {"n1": "spare", "n2": "spare"}
    assert read["changes"] == [(200.0, row("n1", "claimed")), (300.0, "n2")]


def test_the_history_forgets_what_is_older_than_an_hour():
    history = History(0.0)
    history.start([row("n1"), row("n2")], 0.0)
    history.record(10.0, [row("n1", "claimed")], ["n2"])
    history.record(3000.0, [row("n3")], [])
    read = history.read(3700.0)
    assert read["from"] == 100.0
    assert [(each.name, each.state) for each in read["rows"]] == [("n1", "claimed")]
    assert [change[1].name for change in read["changes"]] == ["n3"]


def test_the_history_is_bounded_by_count():
    history = History(0.0, most=10)
    history.start([], 0.0)
    for number in range(100):
        history.record(float(number), [row(f"n{number % 5}", f"{number}")], [])
    read = history.read(100.0)
    assert len(read["changes"]) == 10
    assert read["from"] == 89.0
    assert {each.state for each in read["rows"]} == {"85", "86", "87", "88", "89"}
