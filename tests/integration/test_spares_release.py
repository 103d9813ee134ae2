"""Release: nodes are cordoned, emptied, restored, and spare again."""

import pytest
from tests.builders.spares_env import NODES, NOT_READY, PODS, SPARE, labels, taints

from nodeyard.capabilities.spares import names
from nodeyard.kube.names import MIRRORED_NODE
from nodeyard.plan.brake import parse_limit
from nodeyard.testing.session import MERGE

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
HELD = "env.test/held"
MAYBE = {"key": names.SPARE_TAINT, "value": "maybe", "effect": "PreferNoSchedule"}


def shape(node):
    """Return the fields that a claim may change and a release restores."""
    metadata, spec = node["metadata"], node["spec"]
    kept = {key: value for key, value in taints(node).items() if key != NOT_READY}
    annotations = {key: value for key, value in metadata.get("annotations", {}).items() if key != names.LABELLED}
    return labels(node), annotations, kept, spec.get("unschedulable", False)


def is_cordoned(node):
    return node["spec"].get("unschedulable", False)


@pytest.fixture
def budget(spares_env):
    """A PodDisruptionBudget that blocks evictions of the spares_env's pods until it is deleted."""
    name = f"{spares_env.name}-budget"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"env.test/name": spares_env.name}}}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    spares_env.rest.create({**kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    yield name
    if any(each["metadata"]["name"] == name for each in spares_env.rest.get(BUDGETS)["items"]):
        spares_env.rest.call("DELETE", f"{BUDGETS}/{name}")


def test_scaling_down_returns_a_node_unchanged_after_its_drain(spares_env, operator, eventually):
    name = spares_env.spare("one", taint=MAYBE, team="before")
    operator("spares")
    eventually(lambda: names.SPARE_LABEL in labels(spares_env.get_node(name)), "the spare is labelled")
    before = shape(spares_env.get_node(name))
    web = spares_env.template("web", 1, releasePolicy="Release")
    spares_env.wait_for_owned(web, 1)
    assert labels(spares_env.get_node(name))["team"] == "web"
    pod = spares_env.pod("busy", name)

    spares_env.change(web, nodes=0)

    eventually(lambda: is_cordoned(spares_env.get_node(name)), "the node is cordoned")
    spares_env.wait_for_event(web, "WaitingForPods")
    assert labels(spares_env.get_node(name))[names.TEMPLATE_LABEL] == web
    spares_env.rest.call("DELETE", f"{PODS}/{pod}")
    spares_env.wait_for_owned(web, 0)
    eventually(
        lambda: shape(spares_env.get_node(name)) == before, "the node is as it was, without the taint of its cordon"
    )
    assert taints(spares_env.get_node(name))[names.SPARE_TAINT] == ("maybe", "PreferNoSchedule")
    spares_env.wait_for_event(web, "Released")


def test_pods_are_evicted_after_a_time_but_never_against_their_budget(spares_env, operator, budget, eventually):
    operator("spares")
    name = spares_env.spare("one")
    web = spares_env.template("web", 1, releasePolicy="Release", release={"evictAfterSeconds": 1})
    spares_env.wait_for_owned(web, 1)
    spares_env.pod("guarded", name)
    eventually(
        lambda: spares_env.rest.get(f"{BUDGETS}/{budget}").get("status", {}).get("expectedPods") == 1, "it counts"
    )

    spares_env.change(web, nodes=0)

    (failed, *_) = spares_env.wait_for_event(web, "EvictedFailed")
    assert "disruption budget" in failed["note"]
    assert len(spares_env.owned(web)) == 1
    spares_env.rest.call("DELETE", f"{BUDGETS}/{budget}")
    spares_env.wait_for_owned(web, 0, timeout=40)
    assert taints(spares_env.get_node(name))[names.SPARE_TAINT] == ("true", "NoSchedule")
    assert not is_cordoned(spares_env.get_node(name))


def test_nodes_that_mirror_a_leaf_count_for_no_template_and_none_is_given_back_for_them(spares_env, operator):
    name = spares_env.spare("one")
    web = spares_env.template("web", 1, releasePolicy="Release")
    theirs = {names.TEMPLATE_LABEL: web, MIRRORED_NODE: "true"}
    mirror = spares_env.node("mirror", **theirs)
    operator("spares")

    spares_env.wait_for_condition(web, "Sufficient", "True", "SufficientNodes")
    spares_env.change(web, nodes=2)
    spares_env.wait_for_condition(web, "Sufficient", "False", "NoSpareNodesFound")

    assert spares_env.get_template(web)["status"]["nodes"] == [name]
    assert not is_cordoned(spares_env.get_node(name))
    assert labels(spares_env.get_node(mirror)).items() >= theirs.items()


def test_a_count_raised_again_keeps_the_node(spares_env, operator, eventually):
    operator("spares")
    name = spares_env.spare("one")
    web = spares_env.template("web", 1, releasePolicy="Release")
    spares_env.wait_for_owned(web, 1)
    spares_env.pod("busy", name)
    spares_env.change(web, nodes=0)
    eventually(lambda: is_cordoned(spares_env.get_node(name)), "the node is cordoned")

    spares_env.change(web, nodes=1)

    eventually(lambda: not is_cordoned(spares_env.get_node(name)), "the node is kept")
    assert names.RELEASE not in spares_env.get_node(name)["metadata"]["annotations"]
    assert labels(spares_env.get_node(name))[names.TEMPLATE_LABEL] == web


def test_a_deleted_template_releases_its_nodes_first(spares_env, operator, eventually):
    operator("spares")
    ours, theirs = spares_env.spare("ours"), spares_env.spare("theirs")
    web = spares_env.template("web", 2, releasePolicy="Release")
    spares_env.wait_for_owned(web, 2)
    spares_env.patch(theirs, {"spec": {"unschedulable": True}})

    spares_env.delete(web)

    eventually(lambda: is_cordoned(spares_env.get_node(ours)), "the node is cordoned")
    assert spares_env.get_template(web)["metadata"]["finalizers"] == [names.FINALIZER]
    eventually(lambda: spares_env.get_template(web) is None, "the template is gone")
    for name in (ours, theirs):
        node = spares_env.get_node(name)
        assert names.TEMPLATE_LABEL not in labels(node)
        assert "team" not in labels(node)
        assert taints(node)[SPARE["key"]] == ("true", "NoSchedule")
    assert not is_cordoned(spares_env.get_node(ours))
    assert is_cordoned(spares_env.get_node(theirs))


def test_a_deleted_template_with_retain_disowns_its_nodes_unchanged(spares_env, operator, eventually):
    operator("spares")
    name = spares_env.spare("one")
    web = spares_env.template("web", 1)
    spares_env.wait_for_owned(web, 1)

    spares_env.delete(web)

    eventually(lambda: spares_env.get_template(web) is None, "the template is gone")
    node = spares_env.get_node(name)
    assert names.TEMPLATE_LABEL not in labels(node)
    assert labels(node)["team"] == "web"
    assert names.SPARE_TAINT not in taints(node)


def test_the_brake_holds_a_deleted_template_that_would_disown_many(spares_env, operator, eventually):
    running = operator("spares", limit=parse_limit("2,10%"))
    spares_env.spares(3)
    web = spares_env.template("web", 3)
    before = spares_env.wait_for_owned(web, 3)

    spares_env.delete(web)

    held = eventually(lambda: running.held.get(names.KEY), "the plan is held")
    spares_env.wait_for_event(web, "NeedsApproval")
    assert spares_env.owned(web) == before
    spares_env.annotate(web, approve=held.id)
    eventually(lambda: spares_env.get_template(web) is None, "the template is gone")
    assert spares_env.owned(web) == []


@pytest.fixture
def stuck(spares_env):
    """`stuck(node)`: a terminating pod on this node whose end no kubelet confirms."""
    names_made = []

    def make(node):
        name = spares_env.pod("stuck", node)
        names_made.append(name)
        spares_env.rest.call("PATCH", f"{PODS}/{name}", {"metadata": {"finalizers": [HELD]}}, content_type=MERGE)
        spares_env.rest.call("DELETE", f"{PODS}/{name}?gracePeriodSeconds=1")
        return name

    yield make
    for name in names_made:
        spares_env.rest.call("PATCH", f"{PODS}/{name}", {"metadata": {"finalizers": None}}, content_type=MERGE)


def test_a_dead_node_is_given_back_though_its_pod_is_never_seen_to_end(spares_env, operator, stuck):
    name = spares_env.spare("one")
    operator("spares")
    web = spares_env.template("web", 1, releasePolicy="Release")
    spares_env.wait_for_owned(web, 1)
    stuck(name)
    spares_env.change(web, nodes=0)
    spares_env.wait_for_event(web, "WaitingForPods")

    unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": ""}
    spares_env.rest.call("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": [unknown]}}, content_type=MERGE)

    spares_env.wait_for_owned(web, 0)
    assert taints(spares_env.get_node(name))[names.SPARE_TAINT] == ("true", "NoSchedule")


@pytest.mark.parametrize("way", ["field", "annotation"])
def test_a_paused_template_is_left_alone_and_others_are_not(spares_env, operator, way):
    spares_env.spares(4)
    still, other = spares_env.template("still", 0), spares_env.template("other", 0)
    if way == "field":
        spares_env.change(still, paused=True)
    else:
        spares_env.annotate(still, paused="true")
    operator("spares")
    spares_env.change(still, nodes=1)
    spares_env.change(other, nodes=2)

    spares_env.wait_for_owned(other, 2)
    spares_env.wait_for_condition(still, "Sufficient", "False", "Paused")
    assert spares_env.owned(still) == []

    if way == "field":
        spares_env.change(still, paused=False)
    else:
        spares_env.annotate(still, paused="false")
    spares_env.wait_for_owned(still, 1)


def test_the_brake_holds_a_large_release_until_somebody_approves(spares_env, operator, eventually):
    running = operator("spares", limit=parse_limit("2,10%"))
    spares_env.spares(5)
    web = spares_env.template("web", 3, releasePolicy="Release")
    spares_env.wait_for_owned(web, 3)

    spares_env.change(web, nodes=0)

    held = eventually(lambda: running.held.get(names.KEY), "the plan is held")
    other = spares_env.template("other", 1)
    spares_env.wait_for_owned(other, 1)
    assert not any(is_cordoned(node) for node in spares_env.owned(web))
    assert running.held[names.KEY].id == held.id
    spares_env.annotate(web, approve=held.id)
    eventually(lambda: all(is_cordoned(node) for node in spares_env.owned(web)), "the nodes are cordoned")
    spares_env.wait_for_owned(web, 0)
    assert not running.held


def test_one_approval_is_for_the_whole_release_its_evictions_and_a_restart_included(spares_env, operator, eventually):
    first = operator("spares", limit=parse_limit("2,10%"))
    nodes = spares_env.spares(4)
    web = spares_env.template("web", 4, releasePolicy="Release", release={"evictAfterSeconds": 2})
    spares_env.wait_for_owned(web, 4)
    for name in nodes:
        spares_env.pod(f"a-{name}", name)
        spares_env.pod(f"b-{name}", name)
    spares_env.change(web, nodes=0)
    held = eventually(lambda: first.held.get(names.KEY), "the plan is held")
    (told,) = spares_env.wait_for_event(web, "NeedsApproval")
    assert f"nodeyard approve {held.id}" in told["note"]

    spares_env.annotate(web, approve=held.id)
    eventually(lambda: any(is_cordoned(node) for node in spares_env.owned(web)), "the release has begun")
    first.kill()
    second = operator("spares", limit=parse_limit("2,10%"))

    spares_env.wait_for_owned(web, 0, timeout=40)
    assert not second.held
    assert spares_env.events(web, "NeedsApproval") == [told]
    assert all(taints(spares_env.get_node(name))[names.SPARE_TAINT] for name in nodes)


def test_the_brake_holds_a_taint_that_evicts_from_many_nodes(spares_env, operator, eventually):
    running = operator("spares", limit=parse_limit("2,10%"))
    spares_env.spares(3)
    web = spares_env.template("web", 3)
    nodes = spares_env.wait_for_owned(web, 3)

    evicting = {"key": "reserved", "value": "web", "effect": "NoExecute"}
    spares_env.change(web, template={"spec": {"taints": [evicting]}})

    held = eventually(lambda: running.held.get(names.KEY), "the plan is held")
    assert not any("reserved" in taints(node) for node in spares_env.owned(web))
    spares_env.annotate(web, approve=held.id)
    eventually(lambda: all("reserved" in taints(node) for node in spares_env.owned(web)), "the nodes are tainted")
    assert len(spares_env.owned(web)) == len(nodes)


def test_a_mistaken_selector_disowns_nothing_without_approval_and_a_fixed_one_takes_nodes_back(
    spares_env, operator, eventually
):
    running = operator("spares", limit=parse_limit("2,10%"))
    nodes = spares_env.spares(3)
    web = spares_env.template("web", 3)
    spares_env.wait_for_owned(web, 3)
    other = spares_env.spare("other", mistaken="yes")
    before = {name: shape(spares_env.get_node(name)) for name in nodes}

    spares_env.change(web, selector={"matchLabels": {"mistaken": "yes"}})

    held = eventually(lambda: running.held.get(names.KEY), "the plan is held")
    spares_env.wait_for_event(web, "NeedsApproval")
    spares_env.wait_for_condition(web, "Sufficient", "True", "SufficientNodes")
    assert {node["metadata"]["name"] for node in spares_env.owned(web)} == set(nodes)
    spares_env.annotate(web, approve=held.id)
    eventually(
        lambda: [node["metadata"]["name"] for node in spares_env.owned(web)] == [other], "the others are disowned"
    )
    assert all(names.RECORD in spares_env.get_node(name)["metadata"]["annotations"] for name in nodes)

    absent = {"key": "mistaken", "operator": "DoesNotExist"}
    spares_env.change(web, selector={"matchLabels": {"mistaken": None}, "matchExpressions": [absent]})

    eventually(
        lambda: {name: shape(spares_env.get_node(name)) for name in nodes} == before, "the nodes are as they were"
    )
    spares_env.wait_for_owned(web, 3)
    spares_env.wait_for_event(web, "TakenBack")
