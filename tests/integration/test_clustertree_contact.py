"""Nodes and leases of a leaf that is cut off, slow, broken, restarted, or rejects the credentials."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from tests.builders.woods import one

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
    """Between the operator and the first leaf."""
    with wired(leaf_servers[0]) as proxy:
        yield proxy


def wired(leaf):
    return FaultProxy(leaf.url, leaf.authority.pem, leaf.admin_token)


def cut(wire):
    wire.add(TruncateEvents(), path="watch=true")
    wire.add(Drop())


@pytest.fixture
def east(wood, wire):
    """A Cluster behind the proxy, reachable and mirrored."""
    wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east", kubeconfig=wire.kubeconfig)
    wood.until_renewed(f"kosmos-{east}")
    wood.until_condition(east, "Ready", "True")
    return east


def are_left_to_run_out(wood, operator, clusters, seconds=45.0):
    """Assert that no lease of these nodes is renewed for some rounds, by the time since the last contact."""

    def renewals():
        return [wood.lease(node)["spec"]["renewTime"] for node in clusters.values()]

    before = renewals()
    for cluster in clusters:
        wood.until(
            lambda cluster=cluster: operator.metric("nodeyard_leaf_contact_age_seconds", cluster=cluster) > seconds,
            "rounds went by",
        )
    return renewals() == before


def test_a_leaf_that_is_cut_off_is_unknown_until_it_is_back(wood, wire, east, tree_operator):
    node = f"kosmos-{east}"

    cut(wire)

    message = wood.until_ready(node, "Unknown", "LeafUnreachable")
    assert f"Leaf cluster {east} has not responded since 20" in message
    wood.until_condition(east, "Reachable", "False", "LeafUnreachable")
    wood.until_condition(east, "LeasesRenewed", "False", "LeasesStopped")
    assert wood.see(east)["status"]["lastContactTime"] in message
    assert wood.offers(node)["cpu"] == "2"
    assert are_left_to_run_out(wood, tree_operator, {east: node})
    wood.until_events(east, "LeafUnreachable")

    wood.leaf.node("n2", cpu="1")
    wire.clear()

    wood.until_ready(node, "True", "KubeletReady")
    wood.until_renewed(node)
    wood.until_condition(east, "Ready", "True")
    wood.until_events(east, "LeafReachable")
    assert "lastContactTime" not in wood.see(east)["status"]
    wood.until_offers(node, cpu="3")


def test_leaves_whose_probe_fails_are_unreachable_though_their_watches_go_on(wood, leaf_servers, tree_operator):
    """Runs all faults concurrently, since each takes several rounds."""
    nodes = {word: wood.leaf.node(word) for word in PROBES}
    with ExitStack() as stack:
        wires = {word: stack.enter_context(wired(leaf_servers[0])) for word in PROBES}
        clusters = {word: wood.cluster(word, one(nodes[word]), kubeconfig=wires[word].kubeconfig) for word in PROBES}
        for word, cluster in clusters.items():
            wood.until_renewed(nodes[word])
            wood.until_condition(cluster, "Ready", "True")

        for word, (fault, _) in PROBES.items():
            wires[word].add(fault, path=PROBE)

        for word, (_, says) in PROBES.items():
            wood.until_ready(nodes[word], "Unknown", "LeafUnreachable")
            wood.until_condition(clusters[word], "Reachable", "False", "LeafUnreachable")
            assert says in wood.condition(clusters[word], "Reachable")[2]
        assert are_left_to_run_out(wood, tree_operator, {clusters[word]: nodes[word] for word in PROBES})
        for wire in wires.values():
            wire.clear()
        for word, cluster in clusters.items():
            wood.until_ready(nodes[word], "True")
            wood.delete(cluster)
            wood.until(lambda cluster=cluster: wood.see(cluster) is None, f"{cluster} is gone")


def test_a_leaf_that_rejects_us_keeps_its_leases_for_the_grace(wood, wire, east):
    node = f"kosmos-{east}"
    wood.change(east, credentialGrace="1h")

    wire.add(Status(401))

    message = wood.until_condition(east, "Reachable", "False", "CredentialsRejected")
    assert "has rejected the credentials" in message
    wood.until_renewed(node)
    assert wood.ready(node)[0] == "True"
    noted = wood.see(east)["metadata"]["annotations"][names.REJECTED_SINCE]
    assert f"since {noted}" in message
    wood.change(east, credentialGrace="1s")
    wood.until_ready(node, "Unknown", "CredentialsRejected")
    wire.clear()
    wood.until_ready(node, "True")
    wood.until_condition(east, "Ready", "True")
    wood.until(lambda: names.REJECTED_SINCE not in wood.see(east)["metadata"]["annotations"], "the note is gone")


def test_one_silent_leaf_does_not_delay_another(wood, wire, east):
    wood.leaves[1].node("m1", cpu="1")
    west = wood.cluster("west", kubeconfig=wood.leaves[1].server.kubeconfig)
    wood.until_offers(f"kosmos-{west}", cpu="1")

    wire.add(HalfOpen())
    wood.until_ready(f"kosmos-{east}", "Unknown", "LeafUnreachable")

    wood.leaves[1].node("m2", cpu="1")
    wood.until_offers(f"kosmos-{west}", cpu="2")
    wood.until_renewed(f"kosmos-{west}")
    wood.until_condition(west, "Ready", "True")


def test_a_leaf_that_was_never_reached_has_no_nodes(wood, wire):
    wood.leaf.node("n1")
    wire.add(Drop())
    east = wood.cluster("east", kubeconfig=wire.kubeconfig)

    wood.until_says(east, "Reachable", "has not been reached yet: ")

    assert wood.mirrors(east) == []
    wire.clear()
    wood.until_mirrors(east, f"kosmos-{east}")


def test_a_leaf_node_that_falls_silent_is_unknown_alone(wood):
    n1, n2 = wood.leaf.node("n1"), wood.leaf.node("n2")
    for node in (n1, n2):
        wood.leaf.lease(node, format_rfc3339_micro(SystemClock().now()))
    east = wood.cluster("east", one(n1), one(n2))
    wood.until_renewed(n1)

    wood.leaf.lease(n1, "2026-01-01T00:00:00.000000Z")
    # The lease is no event by itself, and the node may be heard of before it, but not twice.
    for look in ("again", "once-more"):
        wood.leaf.patch(n1, {"metadata": {"labels": {"look": look}}})
        wood.until_labels(n1, look=look)

    wood.until_ready(n1, "Unknown", "LeafNodeSilent")
    assert wood.ready(n2)[0] == "True"
    silent = wood.lease(n1)["spec"]["renewTime"]
    wood.until_renewed(n2)
    assert wood.lease(n1)["spec"]["renewTime"] == silent
    wood.until_condition(east, "Reachable", "True")
    wood.leaf.lease(n1, format_rfc3339_micro(SystemClock().now()))
    wood.until_ready(n1, "True")
    wood.until_renewed(n1)


def test_a_kubeconfig_that_leads_to_another_cluster_changes_nothing_until_it_is_approved(wood, tree_operator):
    n1, other = wood.leaf.node("n1", cpu="2"), wood.leaves[1]
    east = wood.cluster("east", one(n1))
    wood.until_condition(east, "Ready", "True")
    uid, note = wood.get(n1)["metadata"]["uid"], wood.see(east)["metadata"]["annotations"][names.LEAF]

    wood.secret(east, other.server.kubeconfig)

    message = wood.until_condition(east, "Reachable", "False", "LeafIdentityChanged")
    assert note.partition(" ")[0] in message
    wood.until_condition(east, "Ready", "False", "NeedsApproval")
    assert (wood.get(n1)["metadata"]["uid"], wood.offers(n1)["cpu"]) == (uid, "2")
    wood.until_renewed(n1)

    wood.secret(east, wood.leaf.server.kubeconfig)
    wood.until_condition(east, "Ready", "True")
    assert wood.get(n1)["metadata"]["uid"] == uid

    wood.secret(east, other.server.kubeconfig)
    held = wood.until(lambda: tree_operator.held.get(east), "the exchange is held")
    wood.annotate(east, approve=held.id)
    wood.until_mirrors(east)
    assert wood.see(east)["metadata"]["annotations"][names.LEAF] != note


def test_a_leaf_that_is_killed_and_started_again_goes_on(wood):
    leaf = wood.leaves[1]
    leaf.node("n1", cpu="2")
    west = wood.cluster("west", kubeconfig=leaf.server.kubeconfig)
    node = f"kosmos-{west}"
    wood.until_offers(node, cpu="2")
    uid = wood.get(node)["metadata"]["uid"]

    leaf.server.kill()
    try:
        wood.until_ready(node, "Unknown", "LeafUnreachable")
    finally:
        leaf.server.restart()

    wood.until_ready(node, "True")
    leaf.node("n2", cpu="1")
    wood.until_offers(node, cpu="3")
    assert wood.get(node)["metadata"]["uid"] == uid
    wood.until_condition(west, "Ready", "True")
