"""Nodes of a Cluster's models: their names and leaf nodes."""

import pytest

from nodeyard.capabilities.clustertree import names

from ....builders.tree_state import (
    TreeState,
    cluster,
    leaf,
    leaf_node,
    left_by_kosmos,
    node_model,
    reasons,
    refused,
    root_node,
    selector_model,
    settled_state,
    whole_model,
)


def capacity(tree, node):
    return dict(tree.roots[node].status.capacity)


def test_without_models_the_whole_cluster_is_one_node():
    tree = settled_state(nodes=[leaf_node("n1"), leaf_node("n2")])

    assert list(tree.roots) == ["kosmos-east"]
    assert capacity(tree, "kosmos-east") == {"cpu": "8", "memory": "16Gi", "pods": "220"}


def test_each_model_uses_its_own_item_and_a_leaf_node_is_counted_once():
    nodes = [leaf_node("n1", pool="gpu"), leaf_node("n2", pool="gpu"), leaf_node("n3")]
    tree = settled_state(whole_model(), selector_model("gpu", pool="gpu"), node_model("n1"), nodes=nodes)

    assert {name: capacity(tree, name)["cpu"] for name in sorted(tree.roots)} == {
        "kosmos-east": "4",
        "kosmos-gpu-1": "4",
        "n1": "4",
    }


def test_a_selector_wins_over_a_name_and_an_empty_one_takes_the_rest():
    model = selector_model("all", {})
    model["nodeSelector"]["nodeName"] = "n1"

    tree = settled_state(model, node_model("n2"), nodes=[leaf_node("n1"), leaf_node("n2"), leaf_node("n3")])

    assert capacity(tree, "kosmos-all-0")["cpu"] == "8"
    assert refused(tree.plan()) == []


def test_an_overlap_is_reported_and_the_first_party_has_the_node():
    models = (selector_model("gpu", pool="gpu"), selector_model("zone", zone="a"))
    tree = settled_state(*models, nodes=[leaf_node("n1", pool="gpu", zone="a"), leaf_node("n2", zone="a")])

    blocked = tree.plan().plan.blocked

    assert [(each.reason, each.facts.model, list(each.facts.leaf_nodes)) for each in blocked] == [
        ("LeafModelsOverlap", "leafModels[1]", ["n1"])
    ]
    assert capacity(tree, "kosmos-zone-1")["cpu"] == "4"


@pytest.mark.parametrize(
    "models", [(whole_model(), whole_model()), (node_model("n1"), node_model("n1"))], ids=["whole", "one node"]
)
def test_two_models_of_one_node_make_one_node(models):
    tree = settled_state(*models, nodes=[leaf_node("n1")])

    assert len(tree.roots) == 1
    assert refused(tree.plan()) == [("east", "LeafModelsOverlap")]


def test_a_party_keeps_its_node_when_items_before_it_go():
    nodes = [leaf_node("n1", pool="a"), leaf_node("n2", pool="b"), leaf_node("n3", pool="c")]
    tree = settled_state(
        selector_model("a", pool="a"), selector_model("b", pool="b"), selector_model("c", pool="c"), nodes=nodes
    )

    changed = tree.with_(cluster=cluster("east", selector_model("a", pool="a"), selector_model("c", pool="c")))

    assert reasons(changed.plan()) == [
        ("kosmos-b-1", "NodeEmptied"),
        ("kosmos-b-1", "NodeRemoved"),
        ("kosmos-b-1", "LeaseRemoved"),
    ]
    assert sorted(changed.settled().roots) == ["kosmos-a-0", "kosmos-c-2"]


def test_a_new_party_takes_the_next_index_where_a_kept_node_has_its_own():
    tree = settled_state(
        selector_model("a", pool="x"), selector_model("a", pool="y"), nodes=[leaf_node("n1", pool="y")]
    )

    changed = tree.with_(
        cluster=cluster("east", selector_model("a", pool="y"), selector_model("a", pool="z"))
    ).settled()

    assert {name: node.metadata.annotations[names.MODEL] for name, node in changed.roots.items()} == {
        "kosmos-a-0": "party/a/pool=z",
        "kosmos-a-1": "party/a/pool=y",
    }


def test_a_party_whose_selector_is_edited_keeps_its_node():
    tree = settled_state(
        selector_model("a", pool="x"), selector_model("b", pool="b"), nodes=[leaf_node("n1", pool="y")]
    )

    changed = tree.with_(cluster=cluster("east", selector_model("b", pool="b"), selector_model("a", pool="y")))

    assert "kosmos-a-0" in changed.settled().roots
    assert not [each for each in changed.plan().plan.actions if each.verb.value in ("Create", "Delete")]


def test_a_long_name_is_cut_and_its_second_bearer_refused():
    long = "n" * 60
    tree = settled_state(
        selector_model(long, pool="a"), selector_model(long, pool="b"), nodes=[leaf_node("n1", pool="a")]
    )

    assert [len(name) for name in tree.roots] == [63]
    assert refused(tree.plan()) == [("east", "LeafModelsOverlap")]


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (
            selector_model("a", {"matchExpressions": [{"key": "a", "operator": "Near"}]}),
            "labelSelector.matchExpressions[0]",
        ),
        (selector_model("a", {"matchLabels": {"a": 1}}), "labelSelector"),
        (whole_model(labels={"b@d": "x"}), "labels[b@d]"),
        (whole_model(labels={"good": "b@d"}), "labels[good]"),
        (whole_model(taints=["b@d:NoSchedule"]), "taints[0].key"),
        (whole_model(taints=["good:Sometimes"]), "taints[0].effect"),
        (selector_model("UPPER", pool="a"), "kosmos-UPPER-0"),
    ],
    ids=["operator", "shape", "label key", "label value", "taint key", "taint effect", "name"],
)
def test_a_faulty_model_makes_no_node_and_its_field_is_named(model, field):
    planned = TreeState(cluster("east", model, node_model("n1")), leaf(leaf_node("n1"))).plan()

    assert reasons(planned) == [("n1", "NodeCreated")]
    assert refused(planned) == [("east", "InvalidLeafModel")]
    assert field in planned.plan.blocked[0].facts.error


def test_the_node_of_a_model_that_became_faulty_stays_as_it_is():
    tree = settled_state(selector_model("a", pool="a"), nodes=[leaf_node("n1", pool="a")])
    broken = selector_model("a", {"matchExpressions": [{"key": "a", "operator": "Near"}]})

    planned = tree.with_(cluster=cluster("east", broken), leaf=leaf(leaf_node("n1", pool="b", cpu="1"))).plan()

    assert reasons(planned) == []
    assert refused(planned) == [("east", "InvalidLeafModel")]


def test_a_node_that_is_not_ours_is_never_touched():
    tree = TreeState(cluster("east", node_model("n1"), node_model("n2")), leaf(leaf_node("n1"), leaf_node("n2")))

    planned = tree.with_roots(root_node("n1"), left_by_kosmos("n2", "west")).plan()

    assert reasons(planned) == []
    assert refused(planned) == [("n1", "NodeNameTaken"), ("n2", "NodeNameTaken")]
    assert [each.facts.owner for each in planned.plan.blocked] == ["", "west"]


def test_a_node_with_only_one_of_our_marks_is_not_ours():
    half = root_node("kosmos-east", annotations={"kosmos-io/owned-by-cluster": "east"})

    planned = TreeState(cluster("east"), leaf(leaf_node("n1"))).with_roots(half).plan()

    assert reasons(planned) == []
    assert refused(planned) == [("kosmos-east", "NodeNameTaken")]


def test_a_model_of_a_missing_leaf_node_creates_no_node_and_removes_its_old_one():
    tree = settled_state(node_model("n1"), node_model("n2"), nodes=[leaf_node("n1"), leaf_node("n2")])

    planned = tree.with_(leaf=leaf(leaf_node("n1"))).plan()

    assert reasons(planned) == [("n2", "ConditionsChanged"), ("n2", "NodeRemoved"), ("n2", "LeaseRemoved")]
    assert refused(planned) == [("east", "LeafNodeMissing")]
