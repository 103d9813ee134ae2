"""Leaf clusters as nodes of the root: the three models, mixed and changed, and the fields of each node."""

from __future__ import annotations

import pytest
from tests.builders.tree_env import node_model, selector_model, whole_model

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.spares.names import SPARE_TAINT, TEMPLATE_LABEL
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE

TAINT = {"key": MIRRORED_NODE, "value": "true", "effect": "NoSchedule"}

pytestmark = pytest.mark.usefixtures("tree_operator")


def test_a_whole_cluster_is_one_node(tree):
    tree.leaf.node("n1", cpu="4", memory="8Gi", more={"nvidia.com/gpu": "2"})
    tree.leaf.node("n2", cpu="2", memory="4Gi")
    east = tree.cluster("east")
    name = f"kosmos-{east}"

    tree.wait_for_allocatable(name, cpu="6", memory="12Gi", pods="220", **{"nvidia.com/gpu": "2"})

    node = tree.get_node(name)
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
    assert tree.wait_for_ready(name, "True", "KubeletReady")
    assert tree.wait_for_renewal(name)["spec"]["holderIdentity"] == name
    assert "show what is free" in tree.wait_for_condition(east, "Ready", "True")
    status = tree.get_cluster(east)["status"]
    assert status["clusterTreeStatus"]["leafNodeItems"] == [{"leafNodeName": name}]
    assert (status["nodes"], status["leafNodes"]) == (1, 2)
    assert {each["observedGeneration"] for each in status["conditions"]} == {
        tree.get_cluster(east)["metadata"]["generation"]
    }


def test_a_leaf_node_is_a_node_of_its_own_name(tree):
    addresses = [{"type": "InternalIP", "address": "10.9.9.9"}, {"type": "Hostname", "address": "n1.leaf"}]
    labels = {"zone": "z1", "node-role.kubernetes.io/worker": "", TEMPLATE_LABEL: "web"}
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    n1 = tree.leaf.node("n1", labels=labels, taints=taints, addresses=addresses)
    tree.leaf.node("n2")
    east = tree.cluster("east", node_model(n1))

    tree.wait_for_mirrors(east, n1)

    node = tree.get_node(n1)
    assert node["metadata"]["labels"]["zone"] == "z1"
    assert not {"node-role.kubernetes.io/worker", TEMPLATE_LABEL}.intersection(node["metadata"]["labels"])
    assert {(each["key"], each["effect"]) for each in node["spec"]["taints"]} >= {
        ("gpu", "NoSchedule"),
        (MIRRORED_NODE, "NoSchedule"),
    }
    assert node["status"]["addresses"] == addresses
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.35.0"
    assert tree.ready(n1)[:2] == ("True", "KubeletReady")

    tree.leaf.patch(n1, {"spec": {"unschedulable": True}, "metadata": {"labels": {"zone": None, "rack": "r7"}}})
    tree.wait_for_spec(n1, lambda spec: spec.get("unschedulable") is True)
    tree.wait_for_labels(n1, zone=None, rack="r7")
    tree.leaf.turn(n1, "False")
    tree.wait_for_ready(n1, "False", "KubeletNotReady")
    tree.leaf.patch(n1, {"spec": {"unschedulable": None}})
    tree.leaf.turn(n1, "True")
    tree.wait_for_spec(n1, lambda spec: not spec.get("unschedulable"))
    tree.wait_for_ready(n1, "True")


def test_keys_owned_by_the_root_are_not_mirrored_from_a_leaf(tree):
    forged = ("node-restriction.kubernetes.io/tenant", "node-role.kubernetes.io/control-plane", TEMPLATE_LABEL)
    good = {"type": "InternalIP", "address": "10.9.9.8"}
    addresses = [
        {"type": "InternalIP", "address": "169.254.169.254"},
        good,
        {"type": "Hostname", "address": "127.0.0.1"},
    ]
    taints = [{"key": SPARE_TAINT, "value": "true", "effect": "NoSchedule"}]
    labels = dict.fromkeys(forged, "vault") | {"rack": "r1"}
    n1 = tree.leaf.node("n1", labels=labels, taints=taints, addresses=addresses)
    east = tree.cluster("east", node_model(n1))

    tree.wait_for_mirrors(east, n1)

    node = tree.get_node(n1)
    assert node["metadata"]["labels"]["rack"] == "r1"
    assert not set(forged).intersection(node["metadata"]["labels"])
    assert SPARE_TAINT not in {each["key"] for each in node["spec"]["taints"]}
    assert node["spec"]["unschedulable"] is True
    assert node["status"]["addresses"] == [good]

    tree.leaf.patch(n1, {"spec": {"taints": None}, "metadata": {"labels": {forged[0]: "other", "rack": "r2"}}})
    tree.wait_for_labels(n1, rack="r2", **{forged[0]: None})
    tree.wait_for_spec(n1, lambda spec: not spec.get("unschedulable"))


def test_a_cordon_that_a_person_set_in_the_root_is_not_undone(tree):
    n1 = tree.leaf.node("n1")
    east = tree.cluster("east", node_model(n1))
    tree.wait_for_mirrors(east, n1)
    tree.patch(n1, {"spec": {"unschedulable": True}})

    tree.leaf.patch(n1, {"spec": {"unschedulable": True}, "metadata": {"labels": {"seen": "closed"}}})
    tree.wait_for_labels(n1, seen="closed")
    tree.leaf.patch(n1, {"spec": {"unschedulable": None}, "metadata": {"labels": {"seen": "open"}}})
    tree.wait_for_labels(n1, seen="open")

    assert tree.get_node(n1)["spec"]["unschedulable"] is True


def test_models_of_all_three_kinds_share_the_leaf_among_them(tree):
    n1 = tree.leaf.node("n1", cpu="1")
    tree.leaf.node("g1", cpu="8", labels={"pool": "gpu"})
    tree.leaf.node("g2", cpu="8", labels={"pool": "gpu"})
    tree.leaf.node("rest", cpu="3")
    east = tree.cluster(
        "east",
        whole_model(),
        node_model(n1),
        selector_model("gpu", labels={"tier": "gold"}, taints=[dict(TAINT, key="t")]),
    )

    tree.wait_for_mirrors(east, f"kosmos-{east}", n1, "kosmos-gpu-2")

    tree.wait_for_allocatable(n1, cpu="1")
    tree.wait_for_allocatable("kosmos-gpu-2", cpu="16")
    tree.wait_for_allocatable(f"kosmos-{east}", cpu="3")
    gold = tree.get_node("kosmos-gpu-2")
    assert gold["metadata"]["labels"]["tier"] == "gold"
    assert dict(TAINT, key="t") in gold["spec"]["taints"]
    mirrors = sorted([f"kosmos-{east}", n1, "kosmos-gpu-2"])
    tree.wait_until(lambda: listed(tree, east) == mirrors, "the status lists them")


def listed(tree, cluster):
    tree = (tree.get_cluster(cluster).get("status") or {}).get("clusterTreeStatus") or {}
    return [each["leafNodeName"] for each in tree.get("leafNodeItems") or ()]


def test_changed_models_add_and_remove_nodes_and_keep_the_others(tree):
    tree.leaf.node("a", cpu="1", labels={"pool": "a"})
    tree.leaf.node("b", cpu="2", labels={"pool": "b"})
    east = tree.cluster("east", selector_model("a"), selector_model("b"))
    tree.wait_for_mirrors(east, "kosmos-a-0", "kosmos-b-1")
    uid = tree.get_node("kosmos-b-1")["metadata"]["uid"]

    tree.change(east, leafModels=[selector_model("b", labels={"tier": "gold"})])
    tree.wait_for_mirrors(east, "kosmos-b-1")
    tree.wait_for_labels("kosmos-b-1", tier="gold")
    assert tree.get_node("kosmos-b-1")["metadata"]["uid"] == uid
    tree.wait_until(lambda: tree.lease("kosmos-a-0") is None, "its lease is gone")

    tree.change(east, leafModels=[selector_model("b"), whole_model()])
    tree.wait_for_mirrors(east, "kosmos-b-1", f"kosmos-{east}")
    tree.wait_for_labels("kosmos-b-1", tier=None)

    tree.change(east, leafModels=None)
    tree.wait_for_mirrors(east, f"kosmos-{east}")
    tree.wait_for_allocatable(f"kosmos-{east}", cpu="3")


def test_a_name_that_a_real_node_has_is_refused_until_it_is_free(tree):
    n1 = tree.leaf.node("n1")
    tree.node("", name=n1, labels={"mine": "yes"})
    east = tree.cluster("east", node_model(n1))

    message = tree.wait_for_condition(east, "Ready", "False", "NodeNameTaken")

    assert n1 in message
    assert "Nodeyard does not touch it" in message
    assert tree.get_node(n1)["metadata"]["labels"]["mine"] == "yes"
    assert MIRRORED_NODE not in tree.get_node(n1)["metadata"]["labels"]
    tree.wait_until(lambda: ("NodeNameTaken", message) in tree.events(east), "it is told")
    tree.delete_node(n1)
    tree.wait_for_mirrors(east, n1)
    tree.wait_for_condition(east, "Ready", "True")


def test_two_clusters_do_not_share_a_node(tree):
    n1 = tree.leaf.node("n1")
    east = tree.cluster("east", node_model(n1))
    tree.wait_for_mirrors(east, n1)
    west = tree.cluster("west", node_model(n1))

    message = tree.wait_for_condition(west, "Ready", "False", "NodeNameTaken")

    assert f"mirrors Cluster {east}" in message
    assert tree.mirrors(east) == [n1]
    tree.change(east, enable=False)
    tree.wait_for_mirrors(west, n1)


def test_the_second_of_two_clusters_of_one_leaf_waits_for_the_first(tree):
    tree.leaf.node("n1", cpu="2")
    east = tree.cluster("east")
    tree.wait_for_allocatable(f"kosmos-{east}", cpu="2")
    west = tree.cluster("west")

    message = tree.wait_for_condition(west, "Ready", "False", "LeafMirroredByAnother")

    assert f"Cluster {east} mirrors the same leaf" in message
    assert tree.wait_for_event(west, "LeafMirroredByAnother") == message
    assert (tree.mirrors(west), tree.mirrors(east)) == ([], [f"kosmos-{east}"])
    assert tree.allocatable(f"kosmos-{east}")["cpu"] == "2"
    tree.delete(east)
    tree.wait_for_allocatable(f"kosmos-{west}", cpu="2")
    tree.wait_for_condition(west, "Ready", "True")


def test_one_of_two_clusters_created_at_once_mirrors_the_leaf(tree):
    tree.leaf.node("n1", cpu="2")
    both = [tree.cluster("east"), tree.cluster("west")]

    def refused():
        return [each for each in both if tree.condition(each, "Ready")[1] == "LeafMirroredByAnother"]

    tree.wait_until(lambda: len(refused()) == 1, "one is refused")
    [second] = refused()
    [first] = set(both) - {second}
    tree.wait_for_allocatable(f"kosmos-{first}", cpu="2")
    tree.wait_until(lambda: tree.allocatable(f"kosmos-{second}").get("cpu", "0") == "0", "the other offers nothing")
    tree.wait_for_condition(first, "Ready", "True")


def test_a_node_that_kosmos_left_is_taken_over(tree):
    tree.leaf.node("n1", cpu="3")
    east = tree.unique_name("east")
    name = f"kosmos-{east}"
    tree.node("", name=name, labels={MIRRORED_NODE: "true", "kept": "yes"}, annotations={MIRRORED_CLUSTER: east})
    uid = tree.get_node(name)["metadata"]["uid"]

    tree.cluster("east")
    tree.wait_for_allocatable(name, cpu="3")
    tree.wait_for_spec(name, lambda spec: spec.get("providerID") == f"kosmos://{east}/{name}")

    node = tree.get_node(name)
    assert node["metadata"]["uid"] == uid
    assert node["metadata"]["labels"]["kept"] == "yes"
    assert node["metadata"]["ownerReferences"][0]["name"] == east
    tree.wait_for_event(east, "NodeAdopted")


def test_a_node_deleted_by_hand_comes_back_and_owns_its_lease(tree):
    tree.leaf.node("n1")
    east = tree.cluster("east")
    name = f"kosmos-{east}"
    tree.wait_for_renewal(name)
    before = tree.get_node(name)["metadata"]["uid"]

    tree.delete_node(name)

    def is_back():
        node, lease = tree.get_node(name), tree.lease(name)
        if node is None or lease is None or node["metadata"]["uid"] == before:
            return False
        owners = [each["uid"] for each in lease["metadata"].get("ownerReferences") or ()]
        return owners == [node["metadata"]["uid"]]

    tree.wait_until(is_back, f"{name} is back with a lease of its own")
    tree.wait_for_ready(name, "True")


def test_a_deleted_leaf_node_removes_its_mirror(tree):
    n1, n2 = tree.leaf.node("n1"), tree.leaf.node("n2")
    east = tree.cluster("east", node_model(n1), node_model(n2))
    tree.wait_for_mirrors(east, n1, n2)

    tree.leaf.remove(n1)

    tree.wait_for_mirrors(east, n2)
    assert n1 in tree.wait_for_condition(east, "Ready", "False", "LeafNodeMissing")
    tree.leaf.node("n1")
    tree.wait_for_mirrors(east, n1, n2)
    tree.wait_for_condition(east, "Ready", "True")


def test_an_empty_leaf_and_one_without_ready_nodes_are_nodes_that_offer_nothing(tree):
    east = tree.cluster("east")
    name = f"kosmos-{east}"
    assert "no leaf nodes" in tree.wait_for_ready(name, "False", "LeafNodesNotReady")

    n1 = tree.leaf.node("n1", ready="False")
    tree.wait_for_allocatable(name, cpu="0", memory="0", pods="0")
    assert "is ready" in tree.wait_for_ready(name, "False", "LeafNodesNotReady")

    tree.leaf.turn(n1, "True")
    tree.wait_for_ready(name, "True", "KubeletReady")
    tree.wait_for_allocatable(name, cpu="4")


def test_mirrors_in_the_leaf_are_not_counted_a_second_time(tree):
    tree.leaf.node("own", cpu="2")
    tree.leaf.node("mirror", cpu="64", labels={MIRRORED_NODE: "true"})
    east = tree.cluster("east")

    tree.wait_for_allocatable(f"kosmos-{east}", cpu="2")


def test_a_kubeconfig_that_leads_back_to_the_root_is_refused(tree):
    home = tree.cluster("home", kubeconfig=tree.root.kubeconfig)

    assert "the root itself" in tree.wait_for_condition(home, "Reachable", "False", "KubeconfigRefused")
    assert tree.mirrors(home) == []
