"""Nodes and leases of a leaf that is cut off, slow, broken, restarted, or rejects the credentials."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from tests.builders.tree_env import node_model

from nodeyard.capabilities.clustertree import names
from nodeyard.kube.timestamps import format_rfc3339_micro
from nodeyard.process.clock import SystemClock
from nodeyard.testing.faults import Drop, FaultProxy, HalfOpen, Latency, Status, TruncateEvents

pytestmark = pytest.mark.usefixtures("tree_operator")

PROBE = "/readyz"
PROBES = {
    "broken": (Status(500), "returned 500"),
    "slow": (Latency(60), "no answer in 5 s"),
    "silent": (HalfOpen(), "no answer in 5 s"),
}
"""Faults by name: the fault, and the expected message."""


@pytest.fixture
def wire(leaf_servers):
    """A proxy between the operator and the first leaf."""
    with wired(leaf_servers[0]) as proxy:
        yield proxy


def wired(leaf):
    return FaultProxy(leaf.url, leaf.authority.pem, leaf.admin_token)


def cut(wire):
    wire.add(TruncateEvents(), path="watch=true")
    wire.add(Drop())


@pytest.fixture
def east(tree, wire):
    """A Cluster behind the proxy, reachable and mirrored."""
    tree.leaf.node("n1", cpu="2")
    east = tree.cluster("east", kubeconfig=wire.kubeconfig)
    tree.wait_for_renewal(f"kosmos-{east}")
    tree.wait_for_condition(east, "Ready", "True")
    return east


def are_left_to_run_out(tree, operator, clusters, seconds=45.0):
    """Assert that no lease of these nodes is renewed for some rounds, by the time since the last contact."""

    def renewals():
        return [tree.lease(node)["spec"]["renewTime"] for node in clusters.values()]

    before = renewals()
    for cluster in clusters:
        tree.wait_until(
            lambda cluster=cluster: operator.metric("nodeyard_leaf_contact_age_seconds", cluster=cluster) > seconds,
            "rounds went by",
        )
    return renewals() == before


def test_a_leaf_that_is_cut_off_is_unknown_until_it_is_back(tree, wire, east, tree_operator):
    node = f"kosmos-{east}"

    cut(wire)

    message = tree.wait_for_ready(node, "Unknown", "LeafUnreachable")
    assert f"Leaf cluster {east} has not responded since 20" in message
    tree.wait_for_condition(east, "Reachable", "False", "LeafUnreachable")
    tree.wait_for_condition(east, "LeasesRenewed", "False", "LeasesStopped")
    assert tree.get_cluster(east)["status"]["lastContactTime"] in message
    assert tree.allocatable(node)["cpu"] == "2"
    assert are_left_to_run_out(tree, tree_operator, {east: node})
    tree.wait_for_event(east, "LeafUnreachable")

    tree.leaf.node("n2", cpu="1")
    wire.clear()

    tree.wait_for_ready(node, "True", "KubeletReady")
    tree.wait_for_renewal(node)
    tree.wait_for_condition(east, "Ready", "True")
    tree.wait_for_event(east, "LeafReachable")
    assert "lastContactTime" not in tree.get_cluster(east)["status"]
    tree.wait_for_allocatable(node, cpu="3")


def test_leaves_whose_probe_fails_are_unreachable_even_if_their_watches_work(tree, leaf_servers, tree_operator):
    """Runs all faults concurrently, since each takes several rounds."""
    nodes = {word: tree.leaf.node(word) for word in PROBES}
    with ExitStack() as stack:
        wires = {word: stack.enter_context(wired(leaf_servers[0])) for word in PROBES}
        clusters = {
            word: tree.cluster(word, node_model(nodes[word]), kubeconfig=wires[word].kubeconfig) for word in PROBES
        }
        for word, cluster in clusters.items():
            tree.wait_for_renewal(nodes[word])
            tree.wait_for_condition(cluster, "Ready", "True")

        for word, (fault, _) in PROBES.items():
            wires[word].add(fault, path=PROBE)

        for word, (_, says) in PROBES.items():
            tree.wait_for_ready(nodes[word], "Unknown", "LeafUnreachable")
            tree.wait_for_condition(clusters[word], "Reachable", "False", "LeafUnreachable")
            assert says in tree.condition(clusters[word], "Reachable")[2]
        assert are_left_to_run_out(tree, tree_operator, {clusters[word]: nodes[word] for word in PROBES})
        for wire in wires.values():
            wire.clear()
        for word, cluster in clusters.items():
            tree.wait_for_ready(nodes[word], "True")
            tree.delete(cluster)
            tree.wait_until(lambda cluster=cluster: tree.get_cluster(cluster) is None, f"{cluster} is gone")


def test_a_leaf_that_rejects_us_keeps_its_leases_for_the_grace(tree, wire, east):
    node = f"kosmos-{east}"
    tree.change(east, credentialGrace="1h")

    wire.add(Status(401))

    message = tree.wait_for_condition(east, "Reachable", "False", "CredentialsRejected")
    assert "has rejected the credentials" in message
    tree.wait_for_renewal(node)
    assert tree.ready(node)[0] == "True"
    noted = tree.get_cluster(east)["metadata"]["annotations"][names.REJECTED_SINCE]
    assert f"since {noted}" in message
    tree.change(east, credentialGrace="1s")
    tree.wait_for_ready(node, "Unknown", "CredentialsRejected")
    wire.clear()
    tree.wait_for_ready(node, "True")
    tree.wait_for_condition(east, "Ready", "True")
    tree.wait_until(
        lambda: names.REJECTED_SINCE not in tree.get_cluster(east)["metadata"]["annotations"], "the note is gone"
    )


def test_a_leaf_that_does_not_respond_delays_no_other(tree, wire, east):
    tree.leaves[1].node("m1", cpu="1")
    west = tree.cluster("west", kubeconfig=tree.leaves[1].server.kubeconfig)
    tree.wait_for_allocatable(f"kosmos-{west}", cpu="1")

    wire.add(HalfOpen())
    tree.wait_for_ready(f"kosmos-{east}", "Unknown", "LeafUnreachable")

    tree.leaves[1].node("m2", cpu="1")
    tree.wait_for_allocatable(f"kosmos-{west}", cpu="2")
    tree.wait_for_renewal(f"kosmos-{west}")
    tree.wait_for_condition(west, "Ready", "True")


def test_a_leaf_that_was_never_reached_has_no_nodes(tree, wire):
    tree.leaf.node("n1")
    wire.add(Drop())
    east = tree.cluster("east", kubeconfig=wire.kubeconfig)

    tree.wait_for_message(east, "Reachable", "has not been reached yet: ")

    assert tree.mirrors(east) == []
    wire.clear()
    tree.wait_for_mirrors(east, f"kosmos-{east}")


def test_a_leaf_node_that_stops_reporting_is_unknown_alone(tree):
    n1, n2 = tree.leaf.node("n1"), tree.leaf.node("n2")
    for node in (n1, n2):
        tree.leaf.lease(node, format_rfc3339_micro(SystemClock().now()))
    east = tree.cluster("east", node_model(n1), node_model(n2))
    tree.wait_for_renewal(n1)

    tree.leaf.lease(n1, "2026-01-01T00:00:00.000000Z")
    # A lease causes no event of its own; the node may be seen before it, but not twice.
    for look in ("again", "once-more"):
        tree.leaf.patch(n1, {"metadata": {"labels": {"look": look}}})
        tree.wait_for_labels(n1, look=look)

    tree.wait_for_ready(n1, "Unknown", "LeafNodeSilent")
    assert tree.ready(n2)[0] == "True"
    silent = tree.lease(n1)["spec"]["renewTime"]
    tree.wait_for_renewal(n2)
    assert tree.lease(n1)["spec"]["renewTime"] == silent
    tree.wait_for_condition(east, "Reachable", "True")
    tree.leaf.lease(n1, format_rfc3339_micro(SystemClock().now()))
    tree.wait_for_ready(n1, "True")
    tree.wait_for_renewal(n1)


def test_a_kubeconfig_that_leads_to_another_cluster_changes_nothing_until_it_is_approved(tree, tree_operator):
    n1, other = tree.leaf.node("n1", cpu="2"), tree.leaves[1]
    east = tree.cluster("east", node_model(n1))
    tree.wait_for_condition(east, "Ready", "True")
    uid, note = tree.get_node(n1)["metadata"]["uid"], tree.get_cluster(east)["metadata"]["annotations"][names.LEAF]

    tree.secret(east, other.server.kubeconfig)

    message = tree.wait_for_condition(east, "Reachable", "False", "LeafIdentityChanged")
    assert note.partition(" ")[0] in message
    tree.wait_for_condition(east, "Ready", "False", "NeedsApproval")
    assert (tree.get_node(n1)["metadata"]["uid"], tree.allocatable(n1)["cpu"]) == (uid, "2")
    tree.wait_for_renewal(n1)

    tree.secret(east, tree.leaf.server.kubeconfig)
    tree.wait_for_condition(east, "Ready", "True")
    assert tree.get_node(n1)["metadata"]["uid"] == uid

    tree.secret(east, other.server.kubeconfig)
    held = tree.wait_until(lambda: tree_operator.held.get(east), "the exchange is held")
    tree.annotate(east, approve=held.id)
    tree.wait_for_mirrors(east)
    assert tree.get_cluster(east)["metadata"]["annotations"][names.LEAF] != note


def test_a_leaf_that_is_killed_and_started_again_continues(tree):
    leaf = tree.leaves[1]
    leaf.node("n1", cpu="2")
    west = tree.cluster("west", kubeconfig=leaf.server.kubeconfig)
    node = f"kosmos-{west}"
    tree.wait_for_allocatable(node, cpu="2")
    uid = tree.get_node(node)["metadata"]["uid"]

    leaf.server.kill()
    try:
        tree.wait_for_ready(node, "Unknown", "LeafUnreachable")
    finally:
        leaf.server.restart()

    tree.wait_for_ready(node, "True")
    leaf.node("n2", cpu="1")
    tree.wait_for_allocatable(node, cpu="3")
    assert tree.get_node(node)["metadata"]["uid"] == uid
    tree.wait_for_condition(west, "Ready", "True")
