"""Several Clusters of one leaf: each leaf node counts for the earliest one only."""

from datetime import timedelta

import msgspec
import pytest

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.ownership import earlier_clusters, leaf_of

from ....builders.messages import remedies
from ....builders.tree_state import (
    NOW,
    TreeState,
    cluster,
    leaf,
    leaf_node,
    node_model,
    reasons,
    refused,
    selector_model,
    settled_state,
    unreached_leaf,
    whole_model,
)

LEAF = "a-leaf"
NODES = (leaf_node("n1", pool="gpu"), leaf_node("n2"))


def noted(name, since, *models, leaf=LEAF, created=NOW):
    """Build a Cluster that mirrors a leaf."""
    metadata = {"annotations": {names.LEAF: f"{leaf} {since}"}, "creationTimestamp": created.isoformat()}
    return cluster(name, *models, metadata=metadata)


def fresh(*models, earlier_clusters=(), nodes=NODES, **given):
    """Build a Cluster that was just created."""
    own = cluster("east", *models, metadata={"finalizers": []})
    return TreeState(own, leaf(*nodes, uid=LEAF, **given), earlier_clusters=earlier_clusters)


def capacity(tree, node):
    return tree.roots[node].status.capacity["cpu"]


# annotation


def test_the_mirrored_leaf_is_recorded_with_the_finalizer_before_the_first_node():
    planned = fresh().plan()

    care, node = planned.plan.actions
    assert (care.reason, node.reason, node.after) == ("FinalizerAdded", "NodeCreated", (care.id,))
    note = {names.LEAF: "a-leaf 2030-01-01T00:00:00.000Z"}
    assert planned.write(care).body == {"metadata": {"annotations": note, "finalizers": [names.FINALIZER]}}
    assert leaf_of(fresh().settled().cluster) == LEAF


def test_the_annotation_stays_for_as_long_as_the_leaf_is_the_same():
    tree = fresh().settled().later(3600)

    assert reasons(tree.plan()) == []
    assert reasons(tree.with_(leaf=unreached_leaf()).plan()) == []


def test_another_leaf_is_recorded_and_one_without_a_uid_is_not():
    tree = fresh().settled().later(60)

    moved = tree.with_(leaf=leaf(*NODES, uid="b-leaf"))
    assert reasons(moved.plan()) == [("east", "ClusterAnnotated")]
    assert moved.settled().cluster.metadata.annotations[names.LEAF] == "b-leaf 2030-01-01T00:01:00.000Z"
    unnamed = tree.with_(leaf=leaf(*NODES)).settled()
    assert names.LEAF not in unnamed.cluster.metadata.annotations


def test_without_a_record_the_oldest_node_says_since_when_it_mirrors():
    tree = settled_state(nodes=NODES)
    node = tree.roots["kosmos-east"]
    made = msgspec.structs.replace(node.metadata, creation_timestamp=NOW - timedelta(days=9))
    old = tree.with_roots(msgspec.structs.replace(node, metadata=made)).with_(leaf=leaf(*NODES, uid=LEAF))

    assert old.settled().cluster.metadata.annotations[names.LEAF] == "a-leaf 2029-12-23T00:00:00.000Z"


def test_the_annotation_is_removed_with_the_last_node():
    tree = fresh().settled()
    spec = msgspec.structs.replace(tree.cluster.tree, enable=False)
    off = msgspec.structs.replace(tree.cluster.spec, cluster_tree_options=spec)

    ended = tree.with_(cluster=msgspec.structs.replace(tree.cluster, spec=off))
    first = ended.after(ended.plan())

    assert leaf_of(first.cluster) == LEAF
    assert leaf_of(first.settled().cluster) == ""
    assert first.settled().cluster.metadata.finalizers == ()


# precedence


@pytest.mark.parametrize(
    ("other", "is_earlier"),
    [
        (noted("west", "2029-12-31T00:00:00.000Z"), True),
        (noted("west", "2030-01-02T00:00:00.000Z"), False),
        (noted("west", "2030-01-01T00:00:00.000Z", created=NOW - timedelta(1)), True),
        (noted("west", "2030-01-01T00:00:00.000Z", created=NOW + timedelta(1)), False),
        (noted("west", "2030-01-01T00:00:00.000Z"), False),
        (noted("ants", "2030-01-01T00:00:00.000Z"), True),
    ],
    ids=["mirrors longer", "mirrors shorter", "made before", "made after", "later by name", "first by name"],
)
def test_the_longest_mirroring_cluster_wins_and_then_the_oldest(other, is_earlier):
    own = noted("east", "2030-01-01T00:00:00.000Z")

    assert earlier_clusters(own, (own, other), LEAF) == ((other,) if is_earlier else ())
    assert earlier_clusters(other, (own, other), LEAF) == (() if is_earlier else (own,))


def test_a_cluster_that_does_not_mirror_the_leaf_yet_comes_last():
    other = noted("west", "2030-01-02T00:00:00.000Z")
    old = cluster("east", metadata={"creationTimestamp": (NOW - timedelta(99)).isoformat()})
    elsewhere = noted("east", "2029-01-01T00:00:00.000Z", leaf="b-leaf")

    assert earlier_clusters(old, (other,), LEAF) == earlier_clusters(elsewhere, (other,), LEAF) == (other,)


# leftovers


@pytest.mark.parametrize(
    "models", [(), (node_model("n1"),), (selector_model("gpu", pool="gpu"), whole_model())], ids=["all", "one", "both"]
)
@pytest.mark.parametrize("first", [(), (selector_model("all", {}),)], ids=["the whole", "an empty selector"])
@pytest.mark.parametrize("nodes", [NODES, ()], ids=["nodes", "none yet"])
def test_a_leaf_mirrored_whole_by_another_cluster_has_no_nodes_left(models, first, nodes):
    tree = fresh(*models, earlier_clusters=(cluster("west", *first),), nodes=nodes)

    planned = tree.plan()

    assert reasons(planned) == []
    assert set(refused(planned)) == {("east", "LeafMirroredByAnother")}
    told = planned.plan.blocked[0].facts.text()
    assert told.startswith("leafModels[0] of Cluster east creates no node: Cluster west mirrors the same leaf")


def test_when_the_first_goes_the_second_has_it_all():
    tree = fresh(earlier_clusters=(cluster("west"),)).settled()

    assert capacity(tree.with_(earlier_clusters=()).settled(), "kosmos-east") == "8"


def test_models_that_select_different_leaf_nodes_coexist():
    tree = fresh(selector_model("gpu", pool="gpu"), earlier_clusters=(cluster("west", node_model("n2")),))

    assert refused(tree.plan()) == []
    assert capacity(tree.settled(), "kosmos-gpu-0") == "4"


def test_the_whole_is_what_is_left_of_it():
    tree = fresh(
        earlier_clusters=(cluster("west", node_model("n2")), cluster("north", selector_model("gpu", pool="none")))
    )

    assert refused(tree.plan()) == []
    assert capacity(tree.settled(), "kosmos-east") == "4"


def test_a_party_reports_what_another_cluster_has():
    nodes = (*NODES, leaf_node("n3", pool="gpu"))
    tree = fresh(selector_model("gpu", pool="gpu"), earlier_clusters=(cluster("west", node_model("n1")),), nodes=nodes)

    (blocked,) = tree.plan().plan.blocked

    assert blocked.facts.text() == (
        "leafModels[0] of Cluster east also selects n1, which Cluster west has; a leaf node counts once"
    )
    assert capacity(tree.settled(), "kosmos-gpu-0") == "4"


def test_invalid_models_of_another_cluster_claim_nothing():
    tree = fresh(
        earlier_clusters=(
            cluster("west", selector_model("odd", {"matchExpressions": [{"key": "a", "operator": "Near"}]})),
        )
    )

    assert capacity(tree.settled(), "kosmos-east") == "8"


@pytest.mark.parametrize("models", [(), (node_model("n1"),)], ids=["all", "one"])
def test_an_existing_node_stays_with_zero_resources_until_the_first_mirror_is_gone(models):
    tree = fresh(*models).settled().later(60)
    (name,) = tree.roots

    second = tree.with_(earlier_clusters=(cluster("west"),)).settled()

    before, after = tree.roots[name], second.roots[name]
    assert set(after.status.capacity.values()) == set(after.status.allocatable.values()) == {"0"}
    assert (after.metadata.labels, after.status.conditions) == (before.metadata.labels, before.status.conditions)
    assert second.with_(earlier_clusters=()).settled().roots[name].status.capacity == before.status.capacity


def test_leaf_nodes_of_another_cluster_are_explained():
    tree = fresh(selector_model("gpu", pool="gpu"), earlier_clusters=(cluster("west", node_model("n1")),))

    decision = tree.why("Cluster", "east")

    assert (decision.rule, remedies(decision)) == ("LeafMirroredByAnother", ("EditLeafModels",))
    assert {each.name: each.reason for each in decision.candidates} == {"n1": "InOtherCluster", "n2": "NotSelected"}
    node = tree.why("Node", "kosmos-gpu-0")
    assert {each.name: each.reason for each in node.candidates} == {"n1": "InOtherCluster", "n2": "NotSelected"}
