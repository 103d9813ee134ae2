"""Over a faulty connection templates converge, and never claim more than `spec.nodes`."""

import pytest
from tests.builders.node_history import History
from tests.builders.spares_env import labels

from nodeyard.apply import writers
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
def test_failed_writes_are_retried_and_no_node_too_many_is_claimed(api, spares_env, faults, operator, fault):
    spares_env.spares(15)
    history = History(api)
    operator("spares", through=faults.kubeconfig).wait_until_leading()
    rule = faults.add(fault, method="PATCH", path="/nodes/", times=8)
    web = spares_env.template("web", 10)

    spares_env.wait_for_owned(web, 10)

    assert rule.hits == 8
    history.assert_sound({web: 10})


def test_a_hanging_write_is_confirmed_by_a_read_and_holds_up_no_other_node(
    api, spares_env, faults, operator, eventually, monkeypatch
):
    monkeypatch.setattr(writers, "WRITE_SECONDS", 8.0)
    spares_env.spares(8)
    history = History(api)
    operator("spares", through=faults.kubeconfig).wait_until_leading()
    eventually(lambda: all(names.SPARE_LABEL in labels(node) for node in spares_env.all()), "the spares are labelled")
    spares_env.wait_until_nodes_ready()
    hung = faults.add(HalfOpen(), method="PATCH", path="/nodes/", times=2)
    web = spares_env.template("web", 8)

    eventually(lambda: hung.hits == 2 and len(spares_env.owned(web)) == 6, "the others are claimed", timeout=7.5)
    spares_env.wait_for_owned(web, 8)

    history.assert_sound({web: 8})


def test_watches_that_break_and_repeat_themselves_lose_nothing(api, spares_env, faults, operator, eventually):
    faults.add(TruncateEvents(), path=WATCH, chance=0.05)
    faults.add(DoubleEvents(), path=WATCH, chance=0.3)
    history = History(api)
    operator("spares", through=faults.kubeconfig)
    web = spares_env.template("web", 3)
    for start in (0, 5, 10):
        spares_env.spares(5, start=start)
        spares_env.wait_for_owned(web, start // 5 * 3 + 3)
        spares_env.change(web, nodes=start // 5 * 3 + 6)
    spares_env.wait_for_owned(web, 12)
    name = spares_env.owned(web)[0]["metadata"]["name"]
    spares_env.patch(name, {"metadata": {"labels": {"team": "drifted"}}})
    eventually(lambda: labels(spares_env.get_node(name))["team"] == "web", "the drift is seen and repaired")
    history.assert_sound({web: 12})


def test_an_api_server_that_was_away_is_caught_up_with(spares_env, faults, operator):
    running = operator("spares", through=faults.kubeconfig).wait_until_leading()
    web = spares_env.template("web", 2)
    spares_env.wait_for_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    faults.add(Drop())
    faults.add(HalfOpen(), path=WATCH)
    spares_env.spares(3)
    spares_env.change(web, nodes=3)
    faults.clear()

    spares_env.wait_for_owned(web, 3)

    assert running.wait_until_leading()


def break_the_watch_of_templates(faults):
    """The next event is cut, and every list and watch fails from then on; single GETs succeed."""
    faults.add(TruncateEvents(), path=TEMPLATES_WATCH)
    return faults.add(Status(500), method="GET", path=TEMPLATES_READ)


def test_a_number_lowered_behind_a_broken_watch_is_read_before_nodes_are_claimed(
    api, spares_env, faults, operator, eventually
):
    operator("spares", through=faults.kubeconfig).wait_until_leading()
    web = spares_env.template("web", 9)
    spares_env.wait_for_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    history = History(api)
    broken = break_the_watch_of_templates(faults)
    spares_env.change(web, nodes=2)
    eventually(lambda: broken.hits, "the watch is broken")

    spares_env.spares(9)

    spares_env.wait_for_owned(web, 2)
    eventually(
        lambda: spares_env.condition(web, "Stale") == ("True", "WatchBroken"), "the status says that caches are stale"
    )
    history.assert_sound({web: 2})
    faults.clear()
    eventually(lambda: spares_env.condition(web, "Stale") == ("", ""), "the status says so no more")


def test_a_new_leader_whose_watch_is_broken_reads_the_number_before_it_claims(
    api, spares_env, faults, operator, eventually
):
    first = operator("spares", identity="first").wait_until_leading()
    second = operator("spares", identity="second", through=faults.kubeconfig)
    web = spares_env.template("web", 9)
    spares_env.wait_for_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    history = History(api)
    broken = break_the_watch_of_templates(faults)
    spares_env.change(web, nodes=2)
    eventually(lambda: broken.hits, "the watch of the second is broken")
    first.kill()
    spares_env.spares(9)

    second.wait_until_leading()

    spares_env.wait_for_owned(web, 2)
    history.assert_sound({web: 2})
