"""A converged cluster causes neither writes nor plans."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.builders.yards import labels

from nodeyard.capabilities.spares import names
from nodeyard.testing.operators import SHORT
from nodeyard.testing.session import MERGE

PLANS = "nodeyard_plan_seconds_count"


def heartbeat(yard, name, moment):
    at = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": at}
    yard.rest.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, content_type=MERGE)


def test_an_operator_that_starts_on_what_is_done_writes_nothing(yard, operator, eventually):
    yard.spares(6)
    first = operator("spares")
    web = yard.template("web", 3)
    yard.until_owned(web, 3)
    eventually(lambda: sum(names.SPARE_LABEL in labels(node) for node in yard.all()) == 3, "the others are labelled")
    yard.until_settled()
    first.stop()
    before = yard.versions()

    second = operator("spares").leading()
    eventually(lambda: second.metric("nodeyard_reconciles_total", result="settled") >= 1, "it has made a pass")

    assert second.written() == {}
    assert yard.versions() == before


def test_heartbeats_cause_no_plan_and_no_write(yard, operator, eventually):
    nodes = yard.spares(4)
    running = operator("spares", lease=replace(SHORT, duration=60))  # one that comes back is a reason to plan
    web = yard.template("web", 2)
    yard.until_owned(web, 2)
    yard.until_told(web, "Claimed")
    eventually(lambda: sum(names.SPARE_LABEL in labels(node) for node in yard.all()) == 2, "the others are labelled")
    yard.until_settled()
    plans, written = rest(running, eventually), running.written()

    now = datetime.now(UTC)
    for beat in range(1, 11):
        for name in nodes:
            heartbeat(yard, name, now + timedelta(seconds=10 * beat))
    # A change that is planned with and leads to nothing: whatever came before it has been looked at too.
    yard.patch(nodes[0], {"metadata": {"labels": {"mark": "after"}}})
    eventually(lambda: running.metric(PLANS) > plans, "the mark is planned with")

    assert rest(running, eventually) == plans + 1
    assert running.written() == written


def test_a_shortage_that_lasts_is_told_once_however_many_spares_arrive(yard, operator, eventually):
    running = operator("spares")
    web, other = yard.template("web", 4, priority=2), yard.template("other", 2)
    (short,) = yard.until_told(web, "NoSpareNodesFound")
    yard.until_told(other, "HighPriorityNodeTemplateExists")
    for number in range(3):
        yard.spare(f"s{number}")
        yard.until_owned(web, number + 1)
    rest(running, eventually)

    assert yard.events(web, "NoSpareNodesFound") == [short]
    (held,) = yard.events(other, "HighPriorityNodeTemplateExists")
    assert not held.get("series")
    eventually(lambda: times(yard.events(web, "Claimed")) == 3, "each claim is told once")


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
