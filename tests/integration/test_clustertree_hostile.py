"""An untrusted leaf: limits of what the operator caches, offers and repeats from it."""

from __future__ import annotations

import pytest
from tests.builders.hostile_leaf import SECRET, HostileLeaf
from tests.builders.tree_env import with_fast_lease_loop

from nodeyard.runtime.remote import client

NODE = {
    "metadata": {"name": "n1", "uid": "1", "resourceVersion": "5"},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


def pod(name, *requests):
    containers = [{"name": f"c{number}", "resources": {"requests": each}} for number, each in enumerate(requests)]
    metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "6"}
    return {
        "metadata": metadata,
        "spec": {"nodeName": "n1", "containers": containers},
        "status": {"phase": "Running"},
    }


@pytest.fixture
def hostile():
    with HostileLeaf() as leaf:
        leaf.nodes = [NODE]
        yield leaf


def test_a_hostile_leaf_offers_no_more_than_it_has_is_not_quoted_and_not_kept_without_bounds(
    tree, operator, hostile, monkeypatch, capfd
):
    monkeypatch.setattr(client, "KEPT_BYTES", 1 << 20)
    hostile.pods = [pod("a", {"cpu": "-5"}, {"cpu": "1"})]
    operator(with_fast_lease_loop())
    east = tree.cluster("east", kubeconfig=hostile.kubeconfig)
    name = f"kosmos-{east}"
    tree.wait_for_allocatable(name, cpu="3")

    hostile.failing = {"/readyz"}
    assert "returned 500" in tree.wait_for_condition(east, "Reachable", "False", "LeafUnreachable")
    hostile.failing = set()
    tree.wait_for_condition(east, "Reachable", "True")

    hostile.flood = True
    message = tree.wait_for_condition(east, "Ready", "False", "LeafTooLarge")
    assert "sends more objects than are kept of one cluster, 1 MiB" in message
    tree.wait_for_renewal(name)
    assert tree.allocatable(name)["cpu"] == "3"
    tree.wait_for_event(east, "LeafTooLarge")

    hostile.failing = {"/api/v1/namespaces/kube-system"}
    west = tree.cluster("west", kubeconfig=hostile.kubeconfig)
    tree.wait_for_message(west, "Reachable", "the server answered 500")
    shown = [tree.get_cluster(east), tree.get_cluster(west), tree.events(east), tree.events(west), capfd.readouterr()]
    assert SECRET not in str(shown)


def test_a_leaf_whose_discovery_has_no_end_is_disconnected(tree, operator, hostile):
    hostile.kinds = 50_000
    operator(with_fast_lease_loop())
    east = tree.cluster("east", kubeconfig=hostile.kubeconfig)

    message = tree.wait_for_condition(east, "Ready", "False", "LeafTooLarge")

    assert "discovery has 4 MiB and more" in message
    assert tree.mirrors(east) == []


def test_a_leaf_that_invents_resources_offers_nothing_and_says_why(tree, operator, hostile):
    hostile.pods = [pod(f"p{number}", {f"example.com/r{number}": "1"}) for number in range(1100)]
    operator(with_fast_lease_loop())
    east = tree.cluster("east", kubeconfig=hostile.kubeconfig)

    message = tree.wait_for_condition(east, "ResourcesSynced", "False", "UnreadableAmounts")

    assert "n1 (its pods have more than 1000 different or invalid requests)" in message
    tree.wait_for_allocatable(f"kosmos-{east}", cpu="0")
