"""Cost of a plan: a pod event of the leaf recomputes only the mirror of its leaf node."""

import pytest

from nodeyard.capabilities.clustertree.planning import resources

from ....builders.trees import cluster, grown, leaf, leaf_node, one, reasons, used

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
def yard():
    yard = grown(*(one(node.name) for node in NODES), nodes=NODES)
    yard.plan()
    return yard


def test_nothing_is_looked_at_twice_while_nothing_changes(yard, looked_at):
    assert reasons(yard.later(60).plan()) == []
    assert looked_at == []


def test_one_leaf_node_that_changes_is_one_node_looked_at(yard, looked_at):
    planned = yard.with_(leaf=leaf(*NODES, used={"n7": used(1, cpu="1")})).plan()

    assert reasons(planned) == [("n7", "ResourcesChanged")]
    assert looked_at == ["n7"]


def test_a_node_that_is_held_back_is_looked_at_again(yard, looked_at):
    busy = yard.with_(leaf=leaf(*NODES, used={"n7": used(1, cpu="1")}))
    busy = busy.after(busy.plan()).with_(leaf=leaf(*NODES, used={"n7": used(2, cpu="2")})).later(0.5)

    early = busy.plan()
    late = busy.with_(now=early.plan.wake_at).plan()

    assert (reasons(early), reasons(late)) == ([], [("n7", "ResourcesChanged")])


def test_another_cluster_object_is_reason_to_look_at_all(yard, looked_at):
    models = [one(node.name) for node in NODES]

    planned = yard.with_(cluster=cluster("east", *models, resources={"reservePercent": 50})).plan()

    assert len(planned.plan.actions) == len(NODES)
    assert len(looked_at) == len(NODES)
