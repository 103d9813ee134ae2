"""A root that rejects writes for a while, and a leaf with missing permissions: no state is lost or invented."""

import pytest
from tests.builders.woods import hurried, one

from nodeyard.plan.brake import Limit
from nodeyard.testing.faults import Drop, FaultProxy, Status, TruncateEvents


@pytest.fixture
def wire(leaf_servers):
    """Between the operator and the first leaf."""
    leaf = leaf_servers[0]
    with FaultProxy(leaf.url, leaf.authority.pem, leaf.admin_token) as proxy:
        yield proxy


def test_a_root_that_refuses_writes_of_nodes_gets_them_later(wood, faults, operator):
    refusals = [
        faults.add(Status(500), method="POST", path="/nodes", times=1),
        faults.add(Status(429, retry_after=1), method="PATCH", path="/nodes/", times=2),
        faults.add(Status(500), method="PATCH", path="/nodes/", times=2),
        faults.add(Drop(after_sending=True), method="PATCH", path="/nodes/", times=1),
    ]
    running = operator(hurried(), through=faults.kubeconfig)
    n1 = wood.leaf.node("n1", cpu="4")
    east = wood.cluster("east")
    name = f"kosmos-{east}"
    wood.until_offers(name, cpu="4")
    uid = wood.get(name)["metadata"]["uid"]

    for number in range(3):
        wood.leaf.pod(f"p{number}", n1, cpu="1")
        wood.until_offers(name, cpu=str(3 - number))

    wood.until_renewed(name)
    wood.until_condition(east, "Ready", "True")
    assert wood.get(name)["metadata"]["uid"] == uid
    assert [rule.hits for rule in refusals] == [1, 2, 2, 1]
    wood.until(lambda: running.metric("nodeyard_leaf_lag_seconds_count", cluster=east) >= 3, "each change is measured")


def test_a_right_to_pods_that_is_taken_away_is_told_and_the_rest_goes_on(wood, wire, operator):
    operator(hurried())
    n1 = wood.leaf.node("n1", cpu="4")
    east = wood.cluster("east", kubeconfig=wire.kubeconfig)
    name = f"kosmos-{east}"
    wood.until_offers(name, cpu="4")
    wood.until_condition(east, "Ready", "True")

    wire.add(Status(403), path=r"/pods\?")
    wire.add(TruncateEvents(), path=r"/pods\?")
    wood.leaf.pod("unseen", n1, cpu="1")

    message = wood.until_condition(east, "ResourcesSynced", "False", "LeafNotWatched")
    assert "cannot watch pods: forbidden" in message
    assert wood.condition(east, "Reachable")[0] == "True"
    wood.until_renewed(name)
    assert wood.ready(name)[0] == "True"

    wire.clear()
    wood.until_offers(name, cpu="3")
    wood.until_condition(east, "Ready", "True")


def test_a_leaf_whose_nodes_are_all_gone_at_once_keeps_its_mirrors_until_somebody_agrees(wood, wire, operator):
    operator(hurried(), limit=Limit(nodes=2, percent=50))
    words = [f"n{number}" for number in range(4)]
    nodes = [wood.leaf.node(word) for word in words]
    east = wood.cluster("east", *(one(node) for node in nodes), kubeconfig=wire.kubeconfig)
    wood.until_mirrors(east, *nodes)
    wood.until_condition(east, "Ready", "True")
    wire.add(TruncateEvents(), path="watch=true")
    wire.add(Drop())
    wood.leaf.turn(nodes[0], "False")
    wood.until_condition(east, "Ready", "False")
    for node in nodes:
        wood.leaf.remove(node)

    # What is missing is missing from a list, as after an outage that was too long to catch up with.
    wire.clear()
    wire.add(Status(410), path=r"/nodes\?.*resourceVersion=[1-9]", times=1)

    message = wood.until_condition(east, "Ready", "False", "NeedsApproval")
    assert "4 of 4" in message
    assert wood.mirrors(east) == sorted(nodes)
    for node in nodes:
        assert "has nothing behind it" in wood.until_ready(node, "Unknown", "LeafNodeGone")
        wood.until_offers(node, cpu="0", memory="0", pods="0")

    wire.clear()
    for word in words:
        wood.leaf.node(word)
    wood.until_condition(east, "Ready", "True")
    assert wood.mirrors(east) == sorted(nodes)
    for node in nodes:
        wood.until_ready(node, "True")
        wood.until_offers(node, cpu="4")


def test_a_leaf_node_with_the_longest_name_is_mirrored(wood, operator):
    operator(hurried())
    name = wood.leaf.node("", name=".".join([wood.name.ljust(61, "x"), "y" * 63, "y" * 63, "z" * 63]))
    assert len(name) == 253
    east = wood.cluster("east", one(name))

    wood.until_renewed(name)

    host = wood.get(name)["metadata"]["labels"]["kubernetes.io/hostname"]
    assert (len(host), host[:55]) == (63, f"{name[:54]}-")
    wood.until_condition(east, "Ready", "True")
