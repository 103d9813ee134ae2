"""Whether Kosmos' manager is alive beside us: by leases that move, and of nodes that it made before any is touched."""

from types import SimpleNamespace

import pytest

from nodeyard.capabilities.clustertree.originals import living_original

from ....builders.trees import NOW, alive, cluster, grown, leaf_node, left_by_kosmos


class Seen:
    """A view of one Cluster."""

    def __init__(self, node, finding=None, *, is_connected_here=True):
        self._node = node
        self._finding = finding
        self._named = "east" if is_connected_here else ""

    def all(self, _kind):
        return (cluster("east"),)

    def finding(self, _name):
        return self._finding

    def cluster(self, _name):
        return SimpleNamespace(name=self._named)

    def indexed(self, _kind, _index, _value):
        return (self._node,)


LEFT = left_by_kosmos("kosmos-east")
OWN = grown(nodes=[leaf_node("n1")]).roots["kosmos-east"]


def test_leases_that_somebody_else_moves_are_a_living_original():
    living = living_original(Seen(OWN, alive(moved=("kosmos-east",))), NOW)

    assert living.name == "Kosmos' clustertree manager"
    assert living.hand_over.startswith("It renews the leases of kosmos-east. Scale the Deployment")


def test_nodes_that_kosmos_made_are_left_alone_until_their_leases_have_been_looked_at():
    living = living_original(Seen(LEFT), NOW)

    assert "as far as is known" in living.name
    assert "kosmos-east" in living.hand_over


@pytest.mark.parametrize(
    "seen",
    [Seen(LEFT, alive()), Seen(OWN), Seen(LEFT, is_connected_here=False)],
    ids=["looked-at", "ours", "another-replicas"],
)
def test_otherwise_there_is_none(seen):
    assert living_original(seen, NOW) is None
