"""Cost of a plan: a pod event of the leaf recomputes only the mirror of its leaf node."""

import pytest

from nodeyard.capabilities.clustertree.planning import resources

from ....builders.tree_state import cluster, leaf, leaf_node, node_model, reasons, settled_state, used

NODES = [leaf_node(f"n{number}") for number in range(50)]


@pytest.fixture
def looked_at(monkeypatch):
    """The leaf nodes whose resources are counted."""
    seen = []
    count = resources.free

    def counting(members, *rest):
        seen.extend(node.name for node in members)
        return count(members, *rest)

    monkeypatch.setattr(resources, "free", counting)
    return seen


@pytest.fixture
def tree():
    tree = settled_state(*(node_model(node.name) for node in NODES), nodes=NODES)
    tree.plan()
    return tree


def test_no_node_is_compared_twice_while_nothing_changes(tree, looked_at):
    assert reasons(tree.later(60).plan()) == []
    assert looked_at == []


def test_one_changed_leaf_node_is_one_node_compared(tree, looked_at):
    planned = tree.with_(leaf=leaf(*NODES, used={"n7": used(1, cpu="1")})).plan()

    assert reasons(planned) == [("n7", "ResourcesChanged")]
    assert looked_at == ["n7"]


def test_a_held_node_is_compared_again(tree, looked_at):
    busy = tree.with_(leaf=leaf(*NODES, used={"n7": used(1, cpu="1")}))
    busy = busy.after(busy.plan()).with_(leaf=leaf(*NODES, used={"n7": used(2, cpu="2")})).later(0.5)

    early = busy.plan()
    late = busy.with_(now=early.plan.wake_at).plan()

    assert (reasons(early), reasons(late)) == ([], [("n7", "ResourcesChanged")])


def test_a_changed_cluster_compares_all_nodes(tree, looked_at):
    models = [node_model(node.name) for node in NODES]

    planned = tree.with_(cluster=cluster("east", *models, resources={"reservePercent": 50})).plan()

    assert len(planned.plan.actions) == len(NODES)
    assert len(looked_at) == len(NODES)
