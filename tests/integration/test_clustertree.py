"""Leaf clusters as nodes of the root: the three models, mixed and changed, and the fields of each node."""

from __future__ import annotations

import pytest
from tests.builders.woods import one, party, whole

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.spares.names import SPARE_TAINT, TEMPLATE_LABEL
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE

TAINT = {"key": MIRRORED_NODE, "value": "true", "effect": "NoSchedule"}

pytestmark = pytest.mark.usefixtures("tree_operator")


def test_a_whole_cluster_is_one_node(wood):
    wood.leaf.node("n1", cpu="4", memory="8Gi", more={"nvidia.com/gpu": "2"})
    wood.leaf.node("n2", cpu="2", memory="4Gi")
    east = wood.cluster("east")
    name = f"kosmos-{east}"

    wood.until_offers(name, cpu="6", memory="12Gi", pods="220", **{"nvidia.com/gpu": "2"})

    node = wood.get(name)
    labels, annotations = node["metadata"]["labels"], node["metadata"]["annotations"]
    assert labels[MIRRORED_NODE] == "true"
    assert labels["kubernetes.io/hostname"] == name
    assert labels["kubernetes.io/arch"] == "arm64"
    assert annotations[MIRRORED_CLUSTER] == east
    assert annotations[names.NODE_MODE] == "one2cluster"
    assert node["spec"]["providerID"] == f"kosmos://{east}/{name}"
    assert TAINT in node["spec"]["taints"]
    assert node["status"]["capacity"] == node["status"]["allocatable"]
    assert node["status"]["addresses"] == [{"type": "Hostname", "address": name}]
    assert wood.until_ready(name, "True", "KubeletReady")
    assert wood.until_renewed(name)["spec"]["holderIdentity"] == name
    assert "show what is free" in wood.until_condition(east, "Ready", "True")
    status = wood.see(east)["status"]
    assert status["clusterTreeStatus"]["leafNodeItems"] == [{"leafNodeName": name}]
    assert (status["nodes"], status["leafNodes"]) == (1, 2)
    assert {each["observedGeneration"] for each in status["conditions"]} == {wood.see(east)["metadata"]["generation"]}


def test_a_leaf_node_is_a_node_of_its_own_name(wood):
    addresses = [{"type": "InternalIP", "address": "10.9.9.9"}, {"type": "Hostname", "address": "n1.leaf"}]
    labels = {"zone": "z1", "node-role.kubernetes.io/worker": "", TEMPLATE_LABEL: "web"}
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    n1 = wood.leaf.node("n1", labels=labels, taints=taints, addresses=addresses)
    wood.leaf.node("n2")
    east = wood.cluster("east", one(n1))

    wood.until_mirrors(east, n1)

    node = wood.get(n1)
    assert node["metadata"]["labels"]["zone"] == "z1"
    assert not {"node-role.kubernetes.io/worker", TEMPLATE_LABEL}.intersection(node["metadata"]["labels"])
    assert {(each["key"], each["effect"]) for each in node["spec"]["taints"]} >= {
        ("gpu", "NoSchedule"),
        (MIRRORED_NODE, "NoSchedule"),
    }
    assert node["status"]["addresses"] == addresses
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.35.0"
    assert wood.ready(n1)[:2] == ("True", "KubeletReady")

    wood.leaf.patch(n1, {"spec": {"unschedulable": True}, "metadata": {"labels": {"zone": None, "rack": "r7"}}})
    wood.until_spec(n1, lambda spec: spec.get("unschedulable") is True)
    wood.until_labels(n1, zone=None, rack="r7")
    wood.leaf.turn(n1, "False")
    wood.until_ready(n1, "False", "KubeletNotReady")
    wood.leaf.patch(n1, {"spec": {"unschedulable": None}})
    wood.leaf.turn(n1, "True")
    wood.until_spec(n1, lambda spec: not spec.get("unschedulable"))
    wood.until_ready(n1, "True")


def test_what_only_the_root_may_say_of_its_nodes_does_not_cross_from_a_leaf(wood):
    forged = ("node-restriction.kubernetes.io/tenant", "node-role.kubernetes.io/control-plane", TEMPLATE_LABEL)
    good = {"type": "InternalIP", "address": "10.9.9.8"}
    addresses = [
        {"type": "InternalIP", "address": "169.254.169.254"},
        good,
        {"type": "Hostname", "address": "127.0.0.1"},
    ]
    taints = [{"key": SPARE_TAINT, "value": "true", "effect": "NoSchedule"}]
    labels = dict.fromkeys(forged, "vault") | {"rack": "r1"}
    n1 = wood.leaf.node("n1", labels=labels, taints=taints, addresses=addresses)
    east = wood.cluster("east", one(n1))

    wood.until_mirrors(east, n1)

    node = wood.get(n1)
    assert node["metadata"]["labels"]["rack"] == "r1"
    assert not set(forged).intersection(node["metadata"]["labels"])
    assert SPARE_TAINT not in {each["key"] for each in node["spec"]["taints"]}
    assert node["spec"]["unschedulable"] is True
    assert node["status"]["addresses"] == [good]

    wood.leaf.patch(n1, {"spec": {"taints": None}, "metadata": {"labels": {forged[0]: "other", "rack": "r2"}}})
    wood.until_labels(n1, rack="r2", **{forged[0]: None})
    wood.until_spec(n1, lambda spec: not spec.get("unschedulable"))


def test_a_cordon_that_a_person_set_in_the_root_is_not_undone(wood):
    n1 = wood.leaf.node("n1")
    east = wood.cluster("east", one(n1))
    wood.until_mirrors(east, n1)
    wood.patch(n1, {"spec": {"unschedulable": True}})

    wood.leaf.patch(n1, {"spec": {"unschedulable": True}, "metadata": {"labels": {"seen": "closed"}}})
    wood.until_labels(n1, seen="closed")
    wood.leaf.patch(n1, {"spec": {"unschedulable": None}, "metadata": {"labels": {"seen": "open"}}})
    wood.until_labels(n1, seen="open")

    assert wood.get(n1)["spec"]["unschedulable"] is True


def test_models_of_all_three_kinds_share_the_leaf_among_them(wood):
    n1 = wood.leaf.node("n1", cpu="1")
    wood.leaf.node("g1", cpu="8", labels={"pool": "gpu"})
    wood.leaf.node("g2", cpu="8", labels={"pool": "gpu"})
    wood.leaf.node("rest", cpu="3")
    east = wood.cluster("east", whole(), one(n1), party("gpu", labels={"tier": "gold"}, taints=[dict(TAINT, key="t")]))

    wood.until_mirrors(east, f"kosmos-{east}", n1, "kosmos-gpu-2")

    wood.until_offers(n1, cpu="1")
    wood.until_offers("kosmos-gpu-2", cpu="16")
    wood.until_offers(f"kosmos-{east}", cpu="3")
    gold = wood.get("kosmos-gpu-2")
    assert gold["metadata"]["labels"]["tier"] == "gold"
    assert dict(TAINT, key="t") in gold["spec"]["taints"]
    mirrors = sorted([f"kosmos-{east}", n1, "kosmos-gpu-2"])
    wood.until(lambda: listed(wood, east) == mirrors, "the status lists them")


def listed(wood, cluster):
    tree = (wood.see(cluster).get("status") or {}).get("clusterTreeStatus") or {}
    return [each["leafNodeName"] for each in tree.get("leafNodeItems") or ()]


def test_changed_models_add_and_remove_nodes_and_keep_the_others(wood):
    wood.leaf.node("a", cpu="1", labels={"pool": "a"})
    wood.leaf.node("b", cpu="2", labels={"pool": "b"})
    east = wood.cluster("east", party("a"), party("b"))
    wood.until_mirrors(east, "kosmos-a-0", "kosmos-b-1")
    uid = wood.get("kosmos-b-1")["metadata"]["uid"]

    wood.change(east, leafModels=[party("b", labels={"tier": "gold"})])
    wood.until_mirrors(east, "kosmos-b-1")
    wood.until_labels("kosmos-b-1", tier="gold")
    assert wood.get("kosmos-b-1")["metadata"]["uid"] == uid
    wood.until(lambda: wood.lease("kosmos-a-0") is None, "its lease is gone")

    wood.change(east, leafModels=[party("b"), whole()])
    wood.until_mirrors(east, "kosmos-b-1", f"kosmos-{east}")
    wood.until_labels("kosmos-b-1", tier=None)

    wood.change(east, leafModels=None)
    wood.until_mirrors(east, f"kosmos-{east}")
    wood.until_offers(f"kosmos-{east}", cpu="3")


def test_a_name_that_a_real_node_has_is_refused_until_it_is_free(wood):
    n1 = wood.leaf.node("n1")
    wood.node("", name=n1, labels={"mine": "yes"})
    east = wood.cluster("east", one(n1))

    message = wood.until_condition(east, "Ready", "False", "NodeNameTaken")

    assert n1 in message
    assert "Nodeyard does not touch it" in message
    assert wood.get(n1)["metadata"]["labels"]["mine"] == "yes"
    assert MIRRORED_NODE not in wood.get(n1)["metadata"]["labels"]
    wood.until(lambda: ("NodeNameTaken", message) in wood.events(east), "it is told")
    wood.remove(n1)
    wood.until_mirrors(east, n1)
    wood.until_condition(east, "Ready", "True")


def test_two_clusters_do_not_share_a_node(wood):
    n1 = wood.leaf.node("n1")
    east = wood.cluster("east", one(n1))
    wood.until_mirrors(east, n1)
    west = wood.cluster("west", one(n1))

    message = wood.until_condition(west, "Ready", "False", "NodeNameTaken")

    assert f"mirrors Cluster {east}" in message
    assert wood.mirrors(east) == [n1]
    wood.change(east, enable=False)
    wood.until_mirrors(west, n1)


def test_of_two_clusters_that_lead_to_one_leaf_the_second_waits_for_the_first(wood):
    wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east")
    wood.until_offers(f"kosmos-{east}", cpu="2")
    west = wood.cluster("west")

    message = wood.until_condition(west, "Ready", "False", "LeafMirroredByAnother")

    assert f"Cluster {east} mirrors the same leaf" in message
    assert wood.until_events(west, "LeafMirroredByAnother") == message
    assert (wood.mirrors(west), wood.mirrors(east)) == ([], [f"kosmos-{east}"])
    assert wood.offers(f"kosmos-{east}")["cpu"] == "2"
    wood.delete(east)
    wood.until_offers(f"kosmos-{west}", cpu="2")
    wood.until_condition(west, "Ready", "True")


def test_of_two_clusters_that_begin_at_once_one_comes_to_offer_the_leaf(wood):
    wood.leaf.node("n1", cpu="2")
    both = [wood.cluster("east"), wood.cluster("west")]

    def refused():
        return [each for each in both if wood.condition(each, "Ready")[1] == "LeafMirroredByAnother"]

    wood.until(lambda: len(refused()) == 1, "one is refused")
    [second] = refused()
    [first] = set(both) - {second}
    wood.until_offers(f"kosmos-{first}", cpu="2")
    wood.until(lambda: wood.offers(f"kosmos-{second}").get("cpu", "0") == "0", "the other offers nothing")
    wood.until_condition(first, "Ready", "True")


def test_a_node_that_kosmos_left_is_taken_over(wood):
    wood.leaf.node("n1", cpu="3")
    east = wood.named("east")
    name = f"kosmos-{east}"
    wood.node("", name=name, labels={MIRRORED_NODE: "true", "kept": "yes"}, annotations={MIRRORED_CLUSTER: east})
    uid = wood.get(name)["metadata"]["uid"]

    wood.cluster("east")
    wood.until_offers(name, cpu="3")
    wood.until_spec(name, lambda spec: spec.get("providerID") == f"kosmos://{east}/{name}")

    node = wood.get(name)
    assert node["metadata"]["uid"] == uid
    assert node["metadata"]["labels"]["kept"] == "yes"
    assert node["metadata"]["ownerReferences"][0]["name"] == east
    wood.until_events(east, "NodeAdopted")


def test_a_node_deleted_by_hand_comes_back_and_owns_its_lease(wood):
    wood.leaf.node("n1")
    east = wood.cluster("east")
    name = f"kosmos-{east}"
    wood.until_renewed(name)
    before = wood.get(name)["metadata"]["uid"]

    wood.remove(name)

    def is_back():
        node, lease = wood.get(name), wood.lease(name)
        if node is None or lease is None or node["metadata"]["uid"] == before:
            return False
        owners = [each["uid"] for each in lease["metadata"].get("ownerReferences") or ()]
        return owners == [node["metadata"]["uid"]]

    wood.until(is_back, f"{name} is back with a lease of its own")
    wood.until_ready(name, "True")


def test_a_leaf_node_that_goes_takes_its_mirror_with_it(wood):
    n1, n2 = wood.leaf.node("n1"), wood.leaf.node("n2")
    east = wood.cluster("east", one(n1), one(n2))
    wood.until_mirrors(east, n1, n2)

    wood.leaf.remove(n1)

    wood.until_mirrors(east, n2)
    assert n1 in wood.until_condition(east, "Ready", "False", "LeafNodeMissing")
    wood.leaf.node("n1")
    wood.until_mirrors(east, n1, n2)
    wood.until_condition(east, "Ready", "True")


def test_an_empty_leaf_and_one_without_ready_nodes_are_nodes_that_offer_nothing(wood):
    east = wood.cluster("east")
    name = f"kosmos-{east}"
    assert "no leaf nodes" in wood.until_ready(name, "False", "LeafNodesNotReady")

    n1 = wood.leaf.node("n1", ready="False")
    wood.until_offers(name, cpu="0", memory="0", pods="0")
    assert "is ready" in wood.until_ready(name, "False", "LeafNodesNotReady")

    wood.leaf.turn(n1, "True")
    wood.until_ready(name, "True", "KubeletReady")
    wood.until_offers(name, cpu="4")


def test_mirrors_in_the_leaf_are_not_counted_a_second_time(wood):
    wood.leaf.node("own", cpu="2")
    wood.leaf.node("mirror", cpu="64", labels={MIRRORED_NODE: "true"})
    east = wood.cluster("east")

    wood.until_offers(f"kosmos-{east}", cpu="2")


def test_a_kubeconfig_that_leads_back_to_the_root_is_refused(wood):
    home = wood.cluster("home", kubeconfig=wood.root.kubeconfig)

    assert "the root itself" in wood.until_condition(home, "Reachable", "False", "KubeconfigRefused")
    assert wood.mirrors(home) == []
