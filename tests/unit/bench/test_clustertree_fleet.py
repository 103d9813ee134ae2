"""The fleet of the clustertree benchmark: expected CPU of mirrored nodes, and its observation."""

from __future__ import annotations

import base64
import itertools
from pathlib import Path

import msgspec
import pytest
from bench.clustertree_churn import HOT, Change, alternate, hot_and_other_nodes, latencies, max_write_rate, percentile
from bench.clustertree_fleet import NODE_MILLIS, POD_MILLIS, Leaf, MirroredCpu, cluster, leaf_node, pod
from bench.load import Target
from bench.servers import RunningServer

from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.objects import Node, Pod


@pytest.fixture
def leaf(tmp_path: Path) -> Leaf:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{}")
    server = RunningServer(Target("https://127.0.0.1:1", b"", ""), (), kubeconfig)
    return Leaf("oak", server, tuple(f"n{number}" for number in range(20)))


def test_a_pod_reduces_the_cpu_of_its_mirrored_node(leaf):
    leaf.add_pod("n3")
    assert leaf.expected_cpu()["n3"] == NODE_MILLIS - POD_MILLIS
    assert leaf.expected_cpu()["n4"] == NODE_MILLIS


def test_a_pod_reduces_the_cpu_of_the_node_that_mirrors_a_whole_leaf(leaf):
    leaf.is_whole = True
    leaf.add_pod("n3")
    assert leaf.expected_cpu() == {"kosmos-oak": 20 * NODE_MILLIS - POD_MILLIS}


def test_objects_decode_as_their_types(leaf):
    made = msgspec.convert(cluster(leaf), Cluster)
    assert base64.b64decode(made.spec.kubeconfig) == b"{}"
    assert [each.node_selector.node_name for each in made.tree.leaf_models] == list(leaf.nodes)
    assert msgspec.convert(leaf_node("n1"), Node).metadata.name == "n1"
    assert msgspec.convert(pod("p", "n1"), Pod).spec.node_name == "n1"


async def test_a_change_has_arrived_at_the_first_cpu_that_includes_it():
    shown = MirroredCpu()
    for at, millis in ((1.0, 100), (2.0, 100), (3.0, 80), (4.0, 60)):
        shown.see("n1", millis, at)
    changes = [Change("n1", 90, 1.5), Change("n1", 80, 2.5), Change("n1", 70, 2.5)]
    assert latencies(shown, changes) == [1.5, 0.5, 1.5]
    with pytest.raises(RuntimeError, match="n1 was never seen with 50m CPU or less"):
        latencies(shown, [Change("n1", 50, 2.0)])


async def test_a_mirrored_node_with_other_cpu_is_an_error_after_the_timeout():
    shown = MirroredCpu()
    shown.see("n1", 100, 1.0)
    await shown.wait_for({"n1": 100})
    with pytest.raises(RuntimeError, match="n2 has CPU None, want 5 millicores"):
        await shown.wait_for({"n1": 100, "n2": 5}, 0.01)


async def test_the_write_rate_is_that_of_the_node_that_changed_most_often():
    shown = MirroredCpu()
    for number in range(11):
        shown.see("hot", 1000 - number, float(number) / 2)
    for number in range(3):
        shown.see("cool", 1000 - number, float(number) * 10)
    assert max_write_rate(shown, ["hot", "cool"], 0.0) == 2.0
    assert max_write_rate(shown, ["cool"], 0.0) == 0.1


def test_hot_nodes_get_half_of_the_pods(leaf):
    hot, others = hot_and_other_nodes([leaf])
    assert (len(hot), len(others)) == (HOT, 10)
    turns = [node for _, node in itertools.islice(alternate(hot, others), 100)]
    assert sum(node in {name for _, name in hot} for node in turns) == 50


def test_a_percentile_is_one_of_the_values():
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile(list(map(float, range(100))), 0.99) == 99.0
    assert percentile([7.0], 0.99) == 7.0
