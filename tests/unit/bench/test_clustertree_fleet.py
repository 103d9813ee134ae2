"""The tree that clustertree is measured on: what the root should show, and when it was seen to."""

from __future__ import annotations

import base64
import itertools
from pathlib import Path

import msgspec
import pytest
from bench.clustertree_churn import HOT, Change, busiest, mixed, percentile, places, waits
from bench.clustertree_fleet import NODE_MILLIS, POD_MILLIS, Leaf, Shown, cluster, leaf_node, pod
from bench.load import Target
from bench.servers import Running

from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.objects import Node, Pod


@pytest.fixture
def leaf(tmp_path: Path) -> Leaf:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{}")
    server = Running(Target("https://127.0.0.1:1", b"", ""), (), kubeconfig)
    return Leaf("oak", server, tuple(f"n{number}" for number in range(20)))


def test_a_pod_takes_away_from_the_node_that_mirrors_its_own(leaf):
    leaf.add_pod("n3")
    assert leaf.offers()["n3"] == NODE_MILLIS - POD_MILLIS
    assert leaf.offers()["n4"] == NODE_MILLIS


def test_a_pod_takes_away_from_the_node_that_mirrors_all(leaf):
    leaf.is_whole = True
    leaf.add_pod("n3")
    assert leaf.offers() == {"kosmos-oak": 20 * NODE_MILLIS - POD_MILLIS}


def test_what_is_made_is_understood(leaf):
    made = msgspec.convert(cluster(leaf), Cluster)
    assert base64.b64decode(made.spec.kubeconfig) == b"{}"
    assert [each.node_selector.node_name for each in made.tree.leaf_models] == list(leaf.nodes)
    assert msgspec.convert(leaf_node("n1"), Node).metadata.name == "n1"
    assert msgspec.convert(pod("p", "n1"), Pod).spec.node_name == "n1"


async def test_a_change_has_arrived_with_the_first_sum_that_includes_it():
    shown = Shown()
    for at, millis in ((1.0, 100), (2.0, 100), (3.0, 80), (4.0, 60)):
        shown.see("n1", millis, at)
    changes = [Change("n1", 90, 1.5), Change("n1", 80, 2.5), Change("n1", 70, 2.5)]
    assert waits(shown, changes) == [1.5, 0.5, 1.5]
    with pytest.raises(RuntimeError, match="n1 was never seen with 50m CPU or less"):
        waits(shown, [Change("n1", 50, 2.0)])


async def test_a_root_that_does_not_show_what_leaves_have_is_told():
    shown = Shown()
    shown.see("n1", 100, 1.0)
    await shown.show({"n1": 100})
    with pytest.raises(RuntimeError, match="n2 offers Nonem CPU and should offer 5m"):
        await shown.show({"n1": 100, "n2": 5}, 0.01)


async def test_the_busiest_node_is_the_one_that_changed_most_often():
    shown = Shown()
    for number in range(11):
        shown.see("hot", 1000 - number, float(number) / 2)
    for number in range(3):
        shown.see("cool", 1000 - number, float(number) * 10)
    assert busiest(shown, ["hot", "cool"], 0.0) == 2.0
    assert busiest(shown, ["cool"], 0.0) == 0.1


def test_half_of_the_pods_are_for_hot_nodes(leaf):
    hot, others = places([leaf])
    assert (len(hot), len(others)) == (HOT, 10)
    turns = [node for _, node in itertools.islice(mixed(hot, others), 100)]
    assert sum(node in {name for _, name in hot} for node in turns) == 50


def test_a_percentile_is_one_of_the_values():
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile(list(map(float, range(100))), 0.99) == 99.0
    assert percentile([7.0], 0.99) == 7.0
