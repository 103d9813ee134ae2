"""Detects Kosmos' running manager by renewals of leases, and before any of its nodes is written."""

from types import SimpleNamespace

import pytest

from nodeyard.capabilities.clustertree.controller import detect_peer_operator

from ....builders.tree_state import NOW, alive, cluster, leaf_node, left_by_kosmos, settled_state


class Seen:
    """A view of one Cluster."""

    def __init__(self, node, health=None, *, is_connected_here=True):
        self._node = node
        self._health = health
        self._named = "east" if is_connected_here else ""

    def all(self, _kind):
        return (cluster("east"),)

    def finding(self, _name):
        return self._health

    def cluster(self, _name):
        return SimpleNamespace(name=self._named)

    def indexed(self, _kind, _index, _value):
        return (self._node,)


LEFT = left_by_kosmos("kosmos-east")
OWN = settled_state(nodes=[leaf_node("n1")]).roots["kosmos-east"]


def test_leases_that_another_process_renews_reveal_a_peer_operator():
    peer = detect_peer_operator(Seen(OWN, alive(moved=("kosmos-east",))), NOW)

    assert peer.name == "Kosmos' clustertree manager"
    assert peer.hand_over.startswith("It renews the leases of kosmos-east. Scale Deployment")


def test_nodes_that_kosmos_made_are_left_alone_until_their_leases_have_been_looked_at():
    peer = detect_peer_operator(Seen(LEFT), NOW)

    assert "as far as is known" in peer.name
    assert "kosmos-east" in peer.hand_over


@pytest.mark.parametrize(
    "seen",
    [Seen(LEFT, alive()), Seen(OWN), Seen(LEFT, is_connected_here=False)],
    ids=["looked-at", "ours", "another-replicas"],
)
def test_otherwise_there_is_no_peer_operator(seen):
    assert detect_peer_operator(seen, NOW) is None
