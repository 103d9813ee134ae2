"""Release: nodes are cordoned, emptied, restored, and spare again."""

import pytest
from tests.builders.yards import NODES, NOT_READY, PODS, SPARE, labels, taints

from nodeyard.capabilities.spares import names
from nodeyard.kube.names import MIRRORED_NODE
from nodeyard.plan.brake import parse_limit
from nodeyard.testing.session import MERGE

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
HELD = "yard.test/held"
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
def budget(yard):
    """A PodDisruptionBudget that blocks evictions of the yard's pods until it is deleted."""
    name = f"{yard.name}-budget"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"yard.test/name": yard.name}}}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    yard.rest.create({**kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    yield name
    if any(each["metadata"]["name"] == name for each in yard.rest.get(BUDGETS)["items"]):
        yard.rest.call("DELETE", f"{BUDGETS}/{name}")


def test_a_lowered_count_gives_a_node_back_as_it_was_once_its_pods_are_gone(yard, operator, eventually):
    name = yard.spare("one", taint=MAYBE, team="before")
    operator("spares")
    eventually(lambda: names.SPARE_LABEL in labels(yard.get(name)), "the spare is labelled")
    before = shape(yard.get(name))
    web = yard.template("web", 1, releasePolicy="Release")
    yard.until_owned(web, 1)
    assert labels(yard.get(name))["team"] == "web"
    pod = yard.pod("busy", name)

    yard.change(web, nodes=0)

    eventually(lambda: is_cordoned(yard.get(name)), "the node is cordoned")
    yard.until_told(web, "WaitingForPods")
    assert labels(yard.get(name))[names.TEMPLATE_LABEL] == web
    yard.rest.call("DELETE", f"{PODS}/{pod}")
    yard.until_owned(web, 0)
    eventually(lambda: shape(yard.get(name)) == before, "the node is as it was, without the taint of its cordon")
    assert taints(yard.get(name))[names.SPARE_TAINT] == ("maybe", "PreferNoSchedule")
    yard.until_told(web, "Released")


def test_pods_are_evicted_after_a_time_but_never_against_their_budget(yard, operator, budget, eventually):
    operator("spares")
    name = yard.spare("one")
    web = yard.template("web", 1, releasePolicy="Release", release={"evictAfterSeconds": 1})
    yard.until_owned(web, 1)
    yard.pod("guarded", name)
    eventually(lambda: yard.rest.get(f"{BUDGETS}/{budget}").get("status", {}).get("expectedPods") == 1, "it counts")

    yard.change(web, nodes=0)

    (failed, *_) = yard.until_told(web, "EvictedFailed")
    assert "disruption budget" in failed["note"]
    assert len(yard.owned(web)) == 1
    yard.rest.call("DELETE", f"{BUDGETS}/{budget}")
    yard.until_owned(web, 0, timeout=40)
    assert taints(yard.get(name))[names.SPARE_TAINT] == ("true", "NoSchedule")
    assert not is_cordoned(yard.get(name))


def test_nodes_that_mirror_a_leaf_count_for_no_template_and_none_is_given_back_for_them(yard, operator):
    name = yard.spare("one")
    web = yard.template("web", 1, releasePolicy="Release")
    theirs = {names.TEMPLATE_LABEL: web, MIRRORED_NODE: "true"}
    mirror = yard.node("mirror", **theirs)
    operator("spares")

    yard.until_condition(web, "Sufficient", "True", "SufficientNodes")
    yard.change(web, nodes=2)
    yard.until_condition(web, "Sufficient", "False", "NoSpareNodesFound")

    assert yard.see(web)["status"]["nodes"] == [name]
    assert not is_cordoned(yard.get(name))
    assert labels(yard.get(mirror)).items() >= theirs.items()


def test_a_count_raised_again_keeps_the_node(yard, operator, eventually):
    operator("spares")
    name = yard.spare("one")
    web = yard.template("web", 1, releasePolicy="Release")
    yard.until_owned(web, 1)
    yard.pod("busy", name)
    yard.change(web, nodes=0)
    eventually(lambda: is_cordoned(yard.get(name)), "the node is cordoned")

    yard.change(web, nodes=1)

    eventually(lambda: not is_cordoned(yard.get(name)), "the node is kept")
    assert names.RELEASE not in yard.get(name)["metadata"]["annotations"]
    assert labels(yard.get(name))[names.TEMPLATE_LABEL] == web


def test_a_deleted_template_gives_its_nodes_back_before_it_goes(yard, operator, eventually):
    operator("spares")
    ours, theirs = yard.spare("ours"), yard.spare("theirs")
    web = yard.template("web", 2, releasePolicy="Release")
    yard.until_owned(web, 2)
    yard.patch(theirs, {"spec": {"unschedulable": True}})

    yard.delete(web)

    eventually(lambda: is_cordoned(yard.get(ours)), "the node is cordoned")
    assert yard.see(web)["metadata"]["finalizers"] == [names.FINALIZER]
    eventually(lambda: yard.see(web) is None, "the template is gone")
    for name in (ours, theirs):
        node = yard.get(name)
        assert names.TEMPLATE_LABEL not in labels(node)
        assert "team" not in labels(node)
        assert taints(node)[SPARE["key"]] == ("true", "NoSchedule")
    assert not is_cordoned(yard.get(ours))
    assert is_cordoned(yard.get(theirs))


def test_a_deleted_template_that_retains_lets_its_nodes_go_as_they_are(yard, operator, eventually):
    operator("spares")
    name = yard.spare("one")
    web = yard.template("web", 1)
    yard.until_owned(web, 1)

    yard.delete(web)

    eventually(lambda: yard.see(web) is None, "the template is gone")
    node = yard.get(name)
    assert names.TEMPLATE_LABEL not in labels(node)
    assert labels(node)["team"] == "web"
    assert names.SPARE_TAINT not in taints(node)


@pytest.fixture
def stuck(yard):
    """`stuck(node)`: a terminating pod on this node whose end no kubelet confirms."""
    names_made = []

    def make(node):
        name = yard.pod("stuck", node)
        names_made.append(name)
        yard.rest.call("PATCH", f"{PODS}/{name}", {"metadata": {"finalizers": [HELD]}}, content_type=MERGE)
        yard.rest.call("DELETE", f"{PODS}/{name}?gracePeriodSeconds=1")
        return name

    yield make
    for name in names_made:
        yard.rest.call("PATCH", f"{PODS}/{name}", {"metadata": {"finalizers": None}}, content_type=MERGE)


def test_a_dead_node_is_given_back_though_its_pod_is_never_seen_to_end(yard, operator, stuck):
    name = yard.spare("one")
    operator("spares")
    web = yard.template("web", 1, releasePolicy="Release")
    yard.until_owned(web, 1)
    stuck(name)
    yard.change(web, nodes=0)
    yard.until_told(web, "WaitingForPods")

    unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": ""}
    yard.rest.call("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": [unknown]}}, content_type=MERGE)

    yard.until_owned(web, 0)
    assert taints(yard.get(name))[names.SPARE_TAINT] == ("true", "NoSchedule")


@pytest.mark.parametrize("way", ["field", "annotation"])
def test_a_paused_template_is_left_alone_and_others_are_not(yard, operator, way):
    yard.spares(4)
    still, other = yard.template("still", 0), yard.template("other", 0)
    if way == "field":
        yard.change(still, paused=True)
    else:
        yard.annotate(still, paused="true")
    operator("spares")
    yard.change(still, nodes=1)
    yard.change(other, nodes=2)

    yard.until_owned(other, 2)
    yard.until_condition(still, "Sufficient", "False", "Paused")
    assert yard.owned(still) == []

    if way == "field":
        yard.change(still, paused=False)
    else:
        yard.annotate(still, paused="false")
    yard.until_owned(still, 1)


def test_the_brake_holds_a_large_release_until_somebody_approves(yard, operator, eventually):
    running = operator("spares", limit=parse_limit("2,10%"))
    yard.spares(5)
    web = yard.template("web", 3, releasePolicy="Release")
    yard.until_owned(web, 3)

    yard.change(web, nodes=0)

    held = eventually(lambda: running.held.get(names.KEY), "the plan is held")
    other = yard.template("other", 1)
    yard.until_owned(other, 1)
    assert not any(is_cordoned(node) for node in yard.owned(web))
    assert running.held[names.KEY].id == held.id
    yard.annotate(web, approve=held.id)
    eventually(lambda: all(is_cordoned(node) for node in yard.owned(web)), "the nodes are cordoned")
    yard.until_owned(web, 0)
    assert not running.held


def test_one_approval_is_for_the_whole_release_its_evictions_and_a_restart_included(yard, operator, eventually):
    first = operator("spares", limit=parse_limit("2,10%"))
    nodes = yard.spares(4)
    web = yard.template("web", 4, releasePolicy="Release", release={"evictAfterSeconds": 2})
    yard.until_owned(web, 4)
    for name in nodes:
        yard.pod(f"a-{name}", name)
        yard.pod(f"b-{name}", name)
    yard.change(web, nodes=0)
    held = eventually(lambda: first.held.get(names.KEY), "the plan is held")
    (told,) = yard.until_told(web, "NeedsApproval")
    assert f"nodeyard approve {held.id}" in told["note"]

    yard.annotate(web, approve=held.id)
    eventually(lambda: any(is_cordoned(node) for node in yard.owned(web)), "the release has begun")
    first.kill()
    second = operator("spares", limit=parse_limit("2,10%"))

    yard.until_owned(web, 0, timeout=40)
    assert not second.held
    assert yard.events(web, "NeedsApproval") == [told]
    assert all(taints(yard.get(name))[names.SPARE_TAINT] for name in nodes)


def test_the_brake_holds_a_taint_that_evicts_from_many_nodes(yard, operator, eventually):
    running = operator("spares", limit=parse_limit("2,10%"))
    yard.spares(3)
    web = yard.template("web", 3)
    nodes = yard.until_owned(web, 3)

    evicting = {"key": "reserved", "value": "web", "effect": "NoExecute"}
    yard.change(web, template={"spec": {"taints": [evicting]}})

    held = eventually(lambda: running.held.get(names.KEY), "the plan is held")
    assert not any("reserved" in taints(node) for node in yard.owned(web))
    yard.annotate(web, approve=held.id)
    eventually(lambda: all("reserved" in taints(node) for node in yard.owned(web)), "the nodes are tainted")
    assert len(yard.owned(web)) == len(nodes)


def test_a_mistaken_selector_disowns_nothing_unasked_and_a_mended_one_takes_nodes_back(yard, operator, eventually):
    running = operator("spares", limit=parse_limit("2,10%"))
    nodes = yard.spares(3)
    web = yard.template("web", 3)
    yard.until_owned(web, 3)
    other = yard.spare("other", mistaken="yes")
    before = {name: shape(yard.get(name)) for name in nodes}

    yard.change(web, selector={"matchLabels": {"mistaken": "yes"}})

    held = eventually(lambda: running.held.get(names.KEY), "the plan is held")
    yard.until_told(web, "NeedsApproval")
    yard.until_condition(web, "Sufficient", "True", "SufficientNodes")
    assert {node["metadata"]["name"] for node in yard.owned(web)} == set(nodes)
    yard.annotate(web, approve=held.id)
    eventually(lambda: [node["metadata"]["name"] for node in yard.owned(web)] == [other], "the others are disowned")
    assert all(names.RECORD in yard.get(name)["metadata"]["annotations"] for name in nodes)

    absent = {"key": "mistaken", "operator": "DoesNotExist"}
    yard.change(web, selector={"matchLabels": {"mistaken": None}, "matchExpressions": [absent]})

    eventually(lambda: {name: shape(yard.get(name)) for name in nodes} == before, "the nodes are as they were")
    yard.until_owned(web, 3)
    yard.until_told(web, "TakenBack")
