"""Opt-in fields beyond nyallocator: eligibility, topology key, pruning, and `kubectl scale`."""

from tests.builders.spares_env import ENV_LABEL, PODS, labels, node_metadata, taints

from nodeyard.capabilities.spares import names
from nodeyard.testing.session import MERGE

AT_ONCE = 15.0
"""Far below the resync interval of ten minutes."""


def make_ready(spares_env, name, *, is_ready):
    ready = {"type": "Ready", "status": "True" if is_ready else "False", "reason": "Test", "message": ""}
    spares_env.rest.call(
        "PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [ready]}}, content_type=MERGE
    )


def test_a_node_that_becomes_ready_is_claimed_at_once_where_that_is_required(spares_env, operator):
    name = spares_env.spare("one")
    make_ready(spares_env, name, is_ready=False)
    operator("spares")
    web = spares_env.template("web", 1, eligibility={"requireReady": True})
    spares_env.wait_for_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    assert spares_env.get_template(web)["status"]["refusals"] == {"NotReady": 1}

    make_ready(spares_env, name, is_ready=True)

    spares_env.wait_for_owned(web, 1, timeout=AT_ONCE)


def test_ready_means_schedulable_too_and_no_more_is_held_than_is_missing(spares_env, operator):
    names_made = spares_env.spares(2, zones="a")
    for name in names_made:
        spares_env.patch(name, {"spec": {"unschedulable": True}})
    operator("spares")
    high = spares_env.template("high", 1, priority=2, eligibility={"requireReady": True})
    spares_env.wait_for_condition(high, "Sufficient", "False", "NoSpareNodesFound")
    assert spares_env.get_template(high)["status"]["refusals"] == {"Unschedulable": 2}

    low = spares_env.template("low", 2)

    (got,) = spares_env.wait_for_owned(low, 1)
    assert got["metadata"]["name"] == names_made[1]
    (told, *_) = spares_env.wait_for_event(low, "ReservedForHigherPriority")
    assert told["note"] == f"Reserved for {high}, which has a higher priority: 1 node ({names_made[0]})"
    spares_env.patch(names_made[0], {"spec": {"unschedulable": None}})
    spares_env.wait_for_owned(high, 1, timeout=AT_ONCE)


def test_a_node_that_becomes_empty_is_claimed_at_once_where_that_is_required(spares_env, operator):
    name = spares_env.spare("one")
    pod = spares_env.pod("busy", name)
    operator("spares")
    web = spares_env.template("web", 1, eligibility={"requireEmpty": True})
    spares_env.wait_for_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    spares_env.wait_for_event(web, "NotEmpty")

    spares_env.rest.call("DELETE", f"{PODS}/{pod}")

    spares_env.wait_for_owned(web, 1, timeout=AT_ONCE)


def test_nodes_are_spread_over_the_topology_of_the_template(spares_env, operator):
    for number in range(6):
        spares_env.spare(f"n{number}", zone="a", **{"rack": f"r{min(number, 2)}"})
    operator("spares")
    web = spares_env.template("web", 3, spread={"topologyKey": "rack"})

    racks = sorted(labels(node)["rack"] for node in spares_env.wait_for_owned(web, 3))

    assert racks == ["r0", "r1", "r2"]


def test_pruning_removes_only_keys_that_the_template_dropped(spares_env, operator, eventually):
    name = spares_env.spare("one")
    operator("spares")
    web = spares_env.template("web", 1, prune=True)
    spares_env.wait_for_owned(web, 1)
    spares_env.patch(name, {"metadata": {"labels": {"foreign": "yes"}}})

    spares_env.change(web, template={"metadata": {"labels": {"team": None}, "annotations": None}, "spec": None})

    eventually(lambda: "team" not in labels(spares_env.get_node(name)), "the label is off")
    node = spares_env.get_node(name)
    assert "team" not in taints(node)
    assert "owner" not in node["metadata"]["annotations"]
    assert labels(node)["foreign"] == "yes"
    assert labels(node)[names.TEMPLATE_LABEL] == web


def test_without_pruning_dropped_keys_stay(spares_env, operator, eventually):
    name = spares_env.spare("one")
    operator("spares")
    web = spares_env.template("web", 1)
    spares_env.wait_for_owned(web, 1)

    spares_env.change(web, template={**node_metadata("web"), "metadata": {"labels": {"team": None, "more": "yes"}}})

    eventually(lambda: labels(spares_env.get_node(name)).get("more") == "yes", "the new label is on")
    assert labels(spares_env.get_node(name))["team"] == "web"


def test_kubectl_scales_it(spares_env, operator, kubectl):
    spares_env.spares(3)
    operator("spares")
    web = spares_env.template("web", 1)
    spares_env.wait_for_owned(web, 1)

    kubectl("scale", "nodetemplate", web, "--replicas=3")

    spares_env.wait_for_owned(web, 3)
    assert {labels(node)[ENV_LABEL] for node in spares_env.owned(web)} == {spares_env.name}
