"""Leaves on the dashboard."""

from datetime import timedelta

import msgspec
import pytest
from tests.builders.tree_state import (
    NOW,
    TreeState,
    alive,
    cluster,
    leaf,
    leaf_node,
    lost,
    node_model,
    root_node,
    selector_model,
    settled_state,
    unreached_leaf,
    used,
)

from nodeyard.capabilities.clustertree import names, surface
from nodeyard.capabilities.clustertree.surface import SURFACE
from nodeyard.capabilities.clustertree.types import ClusterStatus
from nodeyard.capabilities.clustertree.watched import CLUSTER
from nodeyard.kube.objects import Condition
from nodeyard.runtime.surface import Severity, TileState
from nodeyard.watch.view import Memos

SINCE = NOW - timedelta(minutes=5)


class There:
    """The cache of the leaf."""

    def __init__(self, state):
        self._leaf = state.leaf

    def is_synced(self, _kind):
        return self._leaf.is_synced

    def all(self, _kind):
        return list(self._leaf.nodes.values())

    def aggregate(self, _name, group):
        return self._leaf.usage(group)


class View:
    def __init__(self, state):
        self._state = state
        self.memo = Memos().get

    def get(self, kind, name, _namespace=""):
        if kind == CLUSTER:
            return self._state.cluster if name == self._state.cluster.name else None
        return self._state.roots.get(name)

    def all(self, _kind):
        return [self._state.cluster]

    def indexed(self, _kind, _index, value):
        mirrors = self._state.snapshot().mirrors
        return list(mirrors.values()) if value == self._state.cluster.name else []

    def cluster(self, _name):
        return There(self._state)


@pytest.fixture(autouse=True)
def collected(monkeypatch):
    """`collect` is tested with real caches; here it takes the snapshot of the view's state."""
    monkeypatch.setattr(surface, "collect", lambda view, _name, _now: view._state.snapshot())


def with_conditions(state, *conditions, **status):
    stated = ClusterStatus(conditions=tuple(conditions), **status)
    return state.with_(cluster=msgspec.structs.replace(state.cluster, status=stated))


def condition(type, reason, message="it is so", status="False"):
    return Condition(type=type, status=status, reason=reason, message=message, last_transition_time=SINCE)


# tiles


def test_a_mirrored_node_shows_its_leaf_and_its_smallest_free_share():
    state = settled_state(node_model("w1"), nodes=[leaf_node("w1", cpu="4", memory="8Gi")])
    state = state.with_(leaf=leaf(leaf_node("w1"), used={"w1": used(11, cpu="3", memory="2Gi")}))
    tile = SURFACE.tile(View(state), "w1")
    assert (tile.state, tile.leaf, tile.hue, tile.free) == (TileState.MIRRORED, "east", "east", 0.25)


def test_nodes_of_several_leaf_nodes_have_the_share_of_their_members():
    nodes = [leaf_node("w1", cpu="4", pool="gpu"), leaf_node("w2", cpu="4", pool="web"), leaf_node("w3", pool="web")]
    state = settled_state(selector_model("gpu", pool="gpu"), selector_model("web", pool="web"), nodes=nodes)
    state = state.with_(leaf=leaf(*nodes, used={"w1": used(cpu="2"), "w2": used(cpu="2")}))
    view = View(state)
    assert [SURFACE.tile(view, name).free for name in ("kosmos-gpu-0", "kosmos-web-1")] == [0.5, 0.75]


def test_the_share_is_unknown_before_the_leaf_is_listed():
    state = settled_state(node_model("w1"), nodes=[leaf_node("w1")]).with_(leaf=unreached_leaf())
    assert SURFACE.tile(View(state), "w1").free is None


def test_a_node_of_the_root_itself_is_no_mirror():
    state = TreeState(cluster()).with_roots(root_node("own"))
    assert SURFACE.tile(View(state), "own") is None
    assert SURFACE.tile(View(state), "gone") is None


# attention


@pytest.mark.parametrize("reason", ["LeafUnreachable", "CredentialsRejected"])
def test_a_silent_leaf_with_nodes_is_critical(reason):
    state = settled_state(node_model("w1"), nodes=[leaf_node("w1")])
    state = with_conditions(state, condition("Reachable", reason, "no route"))
    (item,) = SURFACE.attention(View(state), NOW)
    assert (item.kind, item.severity, item.object.name) == ("SilentLeaf", Severity.CRITICAL, "east")
    assert (item.reason, item.message, item.since) == (reason, "no route", SINCE)


def test_a_leaf_that_responds_again_needs_nobody():
    state = settled_state(node_model("w1"), nodes=[leaf_node("w1")])
    state = with_conditions(state, condition("Reachable", "LeafReachable", status="True"))
    assert list(SURFACE.attention(View(state), NOW)) == []


def test_a_refused_cluster_needs_attention_and_a_held_one_does_not():
    state = TreeState(cluster())
    refused = with_conditions(state, condition("Ready", "NodeNameTaken"))
    held = with_conditions(state, condition("Ready", "NeedsApproval"))
    assert [each.kind for each in SURFACE.attention(View(refused), NOW)] == ["Refused"]
    assert list(SURFACE.attention(View(held), NOW)) == []


def test_a_silent_leaf_node_is_shown_by_its_mirror():
    state = settled_state(node_model("w1"), nodes=[leaf_node("w1")])
    silent = state.with_(leaf=leaf(leaf_node("w1", ready="Unknown"))).settled()
    (item,) = SURFACE.attention(View(silent), NOW)
    assert (item.kind, item.severity, item.object.kind, item.object.name) == (
        "SilentLeaf",
        Severity.WARNING,
        "Node",
        "w1",
    )


# rollouts


def test_a_leaf_whose_nodes_are_all_there_is_no_rollout():
    state = settled_state(node_model("w1"), node_model("w2"), nodes=[leaf_node("w1"), leaf_node("w2")])
    assert list(SURFACE.rollouts(View(state), NOW)) == []


def test_a_new_leaf_counts_its_nodes_and_names_what_is_refused():
    state = TreeState(cluster("east", node_model("w1"), node_model("w2")), leaf(leaf_node("w1"), leaf_node("w2")))
    state = state.with_roots(root_node("w2")).settled()
    state = with_conditions(state, condition("Ready", "NodeNameTaken"))
    (row,) = SURFACE.rollouts(View(state), NOW)
    assert (row.kind, row.done, row.total, row.next) == ("Leaf", 1, 2, "1 node created.")
    (blocker,) = row.blockers
    assert (blocker.object.kind, blocker.object.name, blocker.reason, blocker.since) == (
        "Node",
        "w2",
        "NodeNameTaken",
        SINCE,
    )
    assert blocker.ways_out[0] == "nodeyard why leaf/east"


def test_a_leaf_that_leaves_shows_the_approval_it_waits_for():
    state = settled_state(node_model("w1"), nodes=[leaf_node("w1")])
    leaving = msgspec.structs.replace(
        state.cluster, metadata=msgspec.structs.replace(state.cluster.metadata, deletion_timestamp=SINCE)
    )
    state = with_conditions(state.with_(cluster=leaving), condition("Ready", "NeedsApproval", "held"), nodes=3)
    (row,) = SURFACE.rollouts(View(state), NOW)
    assert (row.done, row.total, row.state, row.since) == (2, 3, "ClusterDeleting", SINCE)
    assert [each.reason for each in row.blockers] == ["NeedsApproval"]


# places


def resources_of(state):
    (shown,) = SURFACE.places(View(state), NOW).leaves
    return shown, {each.resource: each for each in shown.resources}


def test_the_resources_of_a_leaf_add_up():
    state = TreeState(
        cluster("east", resources={"reservePercent": 10}),
        leaf(leaf_node("w1", cpu="4"), leaf_node("w2", cpu="6"), used={"w1": used(5, cpu="3", memory="1Gi")}),
    )
    shown, found = resources_of(state)
    assert (shown.name, shown.capability) == ("east", "clustertree")
    cpu = found["cpu"]
    assert (cpu.base, cpu.taken, cpu.reserved, cpu.free, cpu.unit) == (10, 3, 1, 6, "")
    assert found["memory"].unit == "bytes"
    assert found["memory"].taken == 2**30
    assert found["pods"].taken == 5


def test_a_leaf_that_was_never_listed_has_no_bars():
    shown, found = resources_of(TreeState(cluster(), unreached_leaf()))
    assert (found, shown.lease_age_seconds) == ({}, None)


def test_the_age_of_the_leases_is_that_of_the_last_renewal():
    renewed = NOW - timedelta(seconds=12)
    shown, _ = resources_of(TreeState(cluster(), leaf(health=alive(renewed_at=renewed))))
    assert shown.lease_age_seconds == 12
    stated = with_conditions(TreeState(cluster(), unreached_leaf()), leases_renewed_time="2029-12-31T23:59:00Z")
    assert resources_of(stated)[0].lease_age_seconds == 60


def test_the_contact_is_that_of_the_lease_loop_or_else_of_the_status():
    shown, _ = resources_of(TreeState(cluster(), leaf(health=lost(SINCE))))
    assert (shown.contact.state, shown.contact.since) == ("LeafUnreachable", SINCE)
    state = with_conditions(
        TreeState(cluster(), unreached_leaf()), condition("Reachable", "LeafUnreachable", "recorded")
    )
    shown, _ = resources_of(state)
    assert (shown.contact.state, shown.contact.message, shown.contact.since) == ("LeafUnreachable", "recorded", SINCE)


def test_the_root_is_no_leaf_of_itself():
    root = cluster("east", metadata={"annotations": {names.CLUSTER_ROLE: names.ROOT}})
    assert SURFACE.places(View(TreeState(root)), NOW).leaves == ()


def test_a_remedy_has_a_command():
    decision = TreeState(cluster(enable=False)).why(names.KIND, "east")
    (remedy,) = SURFACE.remedies(View(TreeState(cluster())), decision)
    assert remedy.command == (
        "kubectl patch clusters.kosmos.io east --type=merge -p "
        """'{"spec":{"clusterTreeOptions":{"enable":true}}}'"""
    )
