"""Opt-in fields beyond nyallocator: eligibility, topology key, pruning, and `kubectl scale`."""

from tests.builders.yards import PODS, YARD, described, labels, taints

from nodeyard.capabilities.spares import names
from nodeyard.testing.session import MERGE

AT_ONCE = 15.0
"""Far below the resync interval of ten minutes."""


def make_ready(yard, name, *, is_ready):
    ready = {"type": "Ready", "status": "True" if is_ready else "False", "reason": "Test", "message": ""}
    yard.rest.call("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, content_type=MERGE)


def test_a_node_that_becomes_ready_is_claimed_at_once_where_that_is_required(yard, operator):
    name = yard.spare("one")
    make_ready(yard, name, is_ready=False)
    operator("spares")
    web = yard.template("web", 1, eligibility={"requireReady": True})
    yard.until_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    assert yard.see(web)["status"]["refusals"] == {"NotReady": 1}

    make_ready(yard, name, is_ready=True)

    yard.until_owned(web, 1, timeout=AT_ONCE)


def test_ready_means_schedulable_too_and_no_more_is_held_than_is_missing(yard, operator):
    names_made = yard.spares(2, zones="a")
    for name in names_made:
        yard.patch(name, {"spec": {"unschedulable": True}})
    operator("spares")
    high = yard.template("high", 1, priority=2, eligibility={"requireReady": True})
    yard.until_condition(high, "Sufficient", "False", "NoSpareNodesFound")
    assert yard.see(high)["status"]["refusals"] == {"Unschedulable": 2}

    low = yard.template("low", 2)

    (got,) = yard.until_owned(low, 1)
    assert got["metadata"]["name"] == names_made[1]
    (told, *_) = yard.until_told(low, "ReservedForHigherPriority")
    assert told["note"] == f"Reserved for {high}, which has a higher priority: 1 node ({names_made[0]})"
    yard.patch(names_made[0], {"spec": {"unschedulable": None}})
    yard.until_owned(high, 1, timeout=AT_ONCE)


def test_a_node_that_becomes_empty_is_claimed_at_once_where_that_is_required(yard, operator):
    name = yard.spare("one")
    pod = yard.pod("busy", name)
    operator("spares")
    web = yard.template("web", 1, eligibility={"requireEmpty": True})
    yard.until_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    yard.until_told(web, "NotEmpty")

    yard.rest.call("DELETE", f"{PODS}/{pod}")

    yard.until_owned(web, 1, timeout=AT_ONCE)


def test_nodes_are_spread_over_what_the_template_says(yard, operator):
    for number in range(6):
        yard.spare(f"n{number}", zone="a", **{"rack": f"r{min(number, 2)}"})
    operator("spares")
    web = yard.template("web", 3, spread={"topologyKey": "rack"})

    racks = sorted(labels(node)["rack"] for node in yard.until_owned(web, 3))

    assert racks == ["r0", "r1", "r2"]


def test_pruning_takes_off_what_the_template_no_longer_says_and_nothing_else(yard, operator, eventually):
    name = yard.spare("one")
    operator("spares")
    web = yard.template("web", 1, prune=True)
    yard.until_owned(web, 1)
    yard.patch(name, {"metadata": {"labels": {"foreign": "yes"}}})

    yard.change(web, template={"metadata": {"labels": {"team": None}, "annotations": None}, "spec": None})

    eventually(lambda: "team" not in labels(yard.get(name)), "the label is off")
    node = yard.get(name)
    assert "team" not in taints(node)
    assert "owner" not in node["metadata"]["annotations"]
    assert labels(node)["foreign"] == "yes"
    assert labels(node)[names.TEMPLATE_LABEL] == web


def test_without_pruning_what_the_template_no_longer_says_stays(yard, operator, eventually):
    name = yard.spare("one")
    operator("spares")
    web = yard.template("web", 1)
    yard.until_owned(web, 1)

    yard.change(web, template={**described("web"), "metadata": {"labels": {"team": None, "more": "yes"}}})

    eventually(lambda: labels(yard.get(name)).get("more") == "yes", "the new label is on")
    assert labels(yard.get(name))["team"] == "web"


def test_kubectl_scales_it(yard, operator, kubectl):
    yard.spares(3)
    operator("spares")
    web = yard.template("web", 1)
    yard.until_owned(web, 1)

    kubectl("scale", "nodetemplate", web, "--replicas=3")

    yard.until_owned(web, 3)
    assert {labels(node)[YARD] for node in yard.owned(web)} == {yard.name}
