"""A converged cluster causes neither writes nor plans."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.builders.spares_env import labels

from nodeyard.capabilities.spares import names
from nodeyard.testing.operators import SHORT
from nodeyard.testing.session import MERGE

PLANS = "nodeyard_plan_seconds_count"


def heartbeat(spares_env, name, moment):
    at = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": at}
    spares_env.rest.call(
        "PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, content_type=MERGE
    )


def test_a_restarted_operator_writes_nothing_when_converged(spares_env, operator, eventually):
    spares_env.spares(6)
    first = operator("spares")
    web = spares_env.template("web", 3)
    spares_env.wait_for_owned(web, 3)
    eventually(
        lambda: sum(names.SPARE_LABEL in labels(node) for node in spares_env.all()) == 3, "the others are labelled"
    )
    spares_env.wait_until_nodes_ready()
    first.stop()
    before = spares_env.versions()

    second = operator("spares").wait_until_leading()
    eventually(lambda: second.metric("nodeyard_reconciles_total", result="settled") >= 1, "it has made a pass")

    assert second.write_counts() == {}
    assert spares_env.versions() == before


def test_heartbeats_cause_no_plan_and_no_write(spares_env, operator, eventually):
    nodes = spares_env.spares(4)
    running = operator("spares", lease=replace(SHORT, duration=60))  # a deleted and recreated node causes a plan
    web = spares_env.template("web", 2)
    spares_env.wait_for_owned(web, 2)
    spares_env.wait_for_event(web, "Claimed")
    eventually(
        lambda: sum(names.SPARE_LABEL in labels(node) for node in spares_env.all()) == 2, "the others are labelled"
    )
    spares_env.wait_until_nodes_ready()
    plans, written = rest(running, eventually), running.write_counts()

    now = datetime.now(UTC)
    for beat in range(1, 11):
        for name in nodes:
            heartbeat(spares_env, name, now + timedelta(seconds=10 * beat))
    # A change that causes a plan without actions: earlier events have been processed too.
    spares_env.patch(nodes[0], {"metadata": {"labels": {"mark": "after"}}})
    eventually(lambda: running.metric(PLANS) > plans, "the mark is planned with")

    assert rest(running, eventually) == plans + 1
    assert running.write_counts() == written


def test_a_lasting_shortage_is_reported_once_however_many_spares_arrive(spares_env, operator, eventually):
    running = operator("spares")
    web, other = spares_env.template("web", 4, priority=2), spares_env.template("other", 2)
    (short,) = spares_env.wait_for_event(web, "NoSpareNodesFound")
    spares_env.wait_for_event(other, "HighPriorityNodeTemplateExists")
    for number in range(3):
        spares_env.spare(f"s{number}")
        spares_env.wait_for_owned(web, number + 1)
    rest(running, eventually)

    assert spares_env.events(web, "NoSpareNodesFound") == [short]
    (held,) = spares_env.events(other, "HighPriorityNodeTemplateExists")
    assert not held.get("series")
    eventually(lambda: times(spares_env.events(web, "Claimed")) == 3, "each claim is told once")


def times(events):
    return sum(each.get("series", {}).get("count", 1) for each in events)


def rest(running, eventually):
    """Return the number of plans once it is stable."""
    seen = []

    def is_at_rest():
        seen.append(running.metric(PLANS))
        return len(seen) >= 10 and len(set(seen[-5:])) == 1

    eventually(is_at_rest, "nothing is planned any more")
    return seen[-1]
