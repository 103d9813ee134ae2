"""When there is nothing to do, nothing is done: no write, and no plan either."""

from datetime import UTC, datetime, timedelta

from tests.builders.yards import labels

from nodeyard.capabilities.spares import names
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
    running = operator("spares")
    web = yard.template("web", 2)
    yard.until_owned(web, 2)
    eventually(lambda: sum(names.SPARE_LABEL in labels(node) for node in yard.all()) == 2, "the others are labelled")
    yard.until_settled()
    mark(yard, running, nodes[0], "calm", eventually)
    plans, written = running.metric(PLANS), running.written()

    now = datetime.now(UTC)
    for beat in range(1, 11):
        for name in nodes:
            heartbeat(yard, name, now + timedelta(seconds=10 * beat))
    mark(yard, running, nodes[0], "after", eventually)

    assert running.metric(PLANS) == plans + 1
    assert running.written() == written


def mark(yard, running, node, value, eventually):
    """A change that is planned with and leads to nothing: all that came before it has been looked at too."""
    plans = running.metric(PLANS)
    yard.patch(node, {"metadata": {"labels": {"mark": value}}})
    eventually(lambda: running.metric(PLANS) > plans, "the mark is planned with")
    eventually(lambda: running.metric("nodeyard_queue_depth") == 0, "nothing is left to do")
