"""A root that rejects writes for a while, and a leaf with missing permissions: no state is lost or invented."""

import pytest
from tests.builders.tree_env import node_model, with_fast_lease_loop

from nodeyard.plan.brake import Limit
from nodeyard.testing.faults import Drop, FaultProxy, Status, TruncateEvents


@pytest.fixture
def wire(leaf_servers):
    """A proxy between the operator and the first leaf."""
    leaf = leaf_servers[0]
    with FaultProxy(leaf.url, leaf.authority.pem, leaf.admin_token) as proxy:
        yield proxy


def test_a_root_that_refuses_writes_of_nodes_gets_them_later(tree, faults, operator):
    refusals = [
        faults.add(Status(500), method="POST", path="/nodes", times=1),
        faults.add(Status(429, retry_after=1), method="PATCH", path="/nodes/", times=2),
        faults.add(Status(500), method="PATCH", path="/nodes/", times=2),
        faults.add(Drop(after_sending=True), method="PATCH", path="/nodes/", times=1),
    ]
    running = operator(with_fast_lease_loop(), through=faults.kubeconfig)
    n1 = tree.leaf.node("n1", cpu="4")
    east = tree.cluster("east")
    name = f"kosmos-{east}"
    tree.wait_for_allocatable(name, cpu="4")
    uid = tree.get_node(name)["metadata"]["uid"]

    for number in range(3):
        tree.leaf.pod(f"p{number}", n1, cpu="1")
        tree.wait_for_allocatable(name, cpu=str(3 - number))

    tree.wait_for_renewal(name)
    tree.wait_for_condition(east, "Ready", "True")
    assert tree.get_node(name)["metadata"]["uid"] == uid
    assert [rule.hits for rule in refusals] == [1, 2, 2, 1]
    tree.wait_until(
        lambda: running.metric("nodeyard_leaf_lag_seconds_count", cluster=east) >= 3, "each change is measured"
    )


def test_a_withdrawn_right_to_pods_is_reported_and_the_rest_continues(tree, wire, operator):
    operator(with_fast_lease_loop())
    n1 = tree.leaf.node("n1", cpu="4")
    east = tree.cluster("east", kubeconfig=wire.kubeconfig)
    name = f"kosmos-{east}"
    tree.wait_for_allocatable(name, cpu="4")
    tree.wait_for_condition(east, "Ready", "True")

    wire.add(Status(403), path=r"/pods\?")
    wire.add(TruncateEvents(), path=r"/pods\?")
    tree.leaf.pod("unseen", n1, cpu="1")

    message = tree.wait_for_condition(east, "ResourcesSynced", "False", "LeafNotWatched")
    assert "cannot watch pods: forbidden" in message
    assert tree.condition(east, "Reachable")[0] == "True"
    tree.wait_for_renewal(name)
    assert tree.ready(name)[0] == "True"

    wire.clear()
    tree.wait_for_allocatable(name, cpu="3")
    tree.wait_for_condition(east, "Ready", "True")


def test_a_leaf_that_loses_all_nodes_at_once_keeps_its_mirrors_until_approval(tree, wire, operator):
    operator(with_fast_lease_loop(), limit=Limit(nodes=2, percent=50))
    words = [f"n{number}" for number in range(4)]
    nodes = [tree.leaf.node(word) for word in words]
    east = tree.cluster("east", *(node_model(node) for node in nodes), kubeconfig=wire.kubeconfig)
    tree.wait_for_mirrors(east, *nodes)
    tree.wait_for_condition(east, "Ready", "True")
    wire.add(TruncateEvents(), path="watch=true")
    wire.add(Drop())
    tree.leaf.turn(nodes[0], "False")
    tree.wait_for_condition(east, "Ready", "False")
    for node in nodes:
        tree.leaf.remove(node)

    # The missing objects are missing from a list, as after an outage that was too long to catch up with.
    wire.clear()
    wire.add(Status(410), path=r"/nodes\?.*resourceVersion=[1-9]", times=1)

    message = tree.wait_for_condition(east, "Ready", "False", "NeedsApproval")
    assert "4 of 4" in message
    assert tree.mirrors(east) == sorted(nodes)
    for node in nodes:
        assert "has nothing behind it" in tree.wait_for_ready(node, "Unknown", "LeafNodeGone")
        tree.wait_for_allocatable(node, cpu="0", memory="0", pods="0")

    wire.clear()
    for word in words:
        tree.leaf.node(word)
    tree.wait_for_condition(east, "Ready", "True")
    assert tree.mirrors(east) == sorted(nodes)
    for node in nodes:
        tree.wait_for_ready(node, "True")
        tree.wait_for_allocatable(node, cpu="4")


def test_a_leaf_node_with_the_longest_name_is_mirrored(tree, operator):
    operator(with_fast_lease_loop())
    name = tree.leaf.node("", name=".".join([tree.name.ljust(61, "x"), "y" * 63, "y" * 63, "z" * 63]))
    assert len(name) == 253
    east = tree.cluster("east", node_model(name))

    tree.wait_for_renewal(name)

    host = tree.get_node(name)["metadata"]["labels"]["kubernetes.io/hostname"]
    assert (len(host), host[:55]) == (63, f"{name[:54]}-")
    tree.wait_for_condition(east, "Ready", "True")
