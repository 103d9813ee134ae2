"""Over a faulty connection templates converge, and never claim more than `spec.nodes`."""

import pytest
from tests.builders.histories import History
from tests.builders.yards import labels

from nodeyard.apply import write_request
from nodeyard.capabilities.spares import names
from nodeyard.testing.faults import DoubleEvents, Drop, HalfOpen, Status, TruncateEvents

WATCH = "watch=true"
TEMPLATES_WATCH = f"/{names.PLURAL}\\?.*watch=true"
TEMPLATES_READ = f"/{names.PLURAL}\\?"


@pytest.mark.parametrize(
    "fault",
    [Status(500), Status(429, retry_after=1), Status(409), Drop(), Drop(after_sending=True)],
    ids=["error", "throttled", "conflict", "cut-before", "answer-lost"],
)
def test_writes_that_fail_are_made_good_and_no_node_is_taken_too_many(api, yard, faults, operator, fault):
    yard.spares(15)
    history = History(api)
    operator("spares", through=faults.kubeconfig).leading()
    rule = faults.add(fault, method="PATCH", path="/nodes/", times=8)
    web = yard.template("web", 10)

    yard.until_owned(web, 10)

    assert rule.hits == 8
    history.assert_sound({web: 10})


def test_a_write_that_hangs_is_settled_by_reading_and_holds_up_no_other_node(
    api, yard, faults, operator, eventually, monkeypatch
):
    monkeypatch.setattr(write_request, "WRITE_SECONDS", 8.0)
    yard.spares(8)
    history = History(api)
    operator("spares", through=faults.kubeconfig).leading()
    eventually(lambda: all(names.SPARE_LABEL in labels(node) for node in yard.all()), "the spares are labelled")
    yard.until_settled()
    hung = faults.add(HalfOpen(), method="PATCH", path="/nodes/", times=2)
    web = yard.template("web", 8)

    eventually(lambda: hung.hits == 2 and len(yard.owned(web)) == 6, "the others are claimed", timeout=7.5)
    yard.until_owned(web, 8)

    history.assert_sound({web: 8})


def test_watches_that_break_and_repeat_themselves_lose_nothing(api, yard, faults, operator, eventually):
    faults.add(TruncateEvents(), path=WATCH, chance=0.05)
    faults.add(DoubleEvents(), path=WATCH, chance=0.3)
    history = History(api)
    operator("spares", through=faults.kubeconfig)
    web = yard.template("web", 3)
    for start in (0, 5, 10):
        yard.spares(5, start=start)
        yard.until_owned(web, start // 5 * 3 + 3)
        yard.change(web, nodes=start // 5 * 3 + 6)
    yard.until_owned(web, 12)
    name = yard.owned(web)[0]["metadata"]["name"]
    yard.patch(name, {"metadata": {"labels": {"team": "drifted"}}})
    eventually(lambda: labels(yard.get(name))["team"] == "web", "the drift is seen and repaired")
    history.assert_sound({web: 12})


def test_an_api_server_that_was_away_is_caught_up_with(yard, faults, operator):
    running = operator("spares", through=faults.kubeconfig).leading()
    web = yard.template("web", 2)
    yard.until_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    faults.add(Drop())
    faults.add(HalfOpen(), path=WATCH)
    yard.spares(3)
    yard.change(web, nodes=3)
    faults.clear()

    yard.until_owned(web, 3)

    assert running.leading()


def break_the_watch_of_templates(faults):
    """The next event is cut, and every list and watch fails from then on; single GETs succeed."""
    faults.add(TruncateEvents(), path=TEMPLATES_WATCH)
    return faults.add(Status(500), method="GET", path=TEMPLATES_READ)


def test_a_number_lowered_behind_a_broken_watch_is_read_before_nodes_are_claimed(
    api, yard, faults, operator, eventually
):
    operator("spares", through=faults.kubeconfig).leading()
    web = yard.template("web", 9)
    yard.until_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    history = History(api)
    broken = break_the_watch_of_templates(faults)
    yard.change(web, nodes=2)
    eventually(lambda: broken.hits, "the watch is broken")

    yard.spares(9)

    yard.until_owned(web, 2)
    eventually(lambda: yard.condition(web, "Stale") == ("True", "WatchBroken"), "the status says that caches are stale")
    history.assert_sound({web: 2})
    faults.clear()
    eventually(lambda: yard.condition(web, "Stale") == ("", ""), "the status says so no more")


def test_a_new_leader_whose_watch_is_broken_reads_the_number_before_it_claims(api, yard, faults, operator, eventually):
    first = operator("spares", identity="first").leading()
    second = operator("spares", identity="second", through=faults.kubeconfig)
    web = yard.template("web", 9)
    yard.until_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    history = History(api)
    broken = break_the_watch_of_templates(faults)
    yard.change(web, nodes=2)
    eventually(lambda: broken.hits, "the watch of the second is broken")
    first.kill()
    yard.spares(9)

    second.leading()

    yard.until_owned(web, 2)
    history.assert_sound({web: 2})
