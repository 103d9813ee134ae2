"""A kubeconfig that points to another cluster than the one that the nodes mirror."""

import msgspec
import pytest

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.leases.inputs import lease_input, node_lease_inputs
from nodeyard.capabilities.clustertree.planning.ownership import is_other
from nodeyard.capabilities.clustertree.snapshot import Leaf
from nodeyard.plan.brake import Limit, brake

from ....builders.messages import remedies
from ....builders.tree_state import (
    NOW,
    alive,
    cluster,
    leaf,
    leaf_node,
    lost,
    node_model,
    reasons,
    refused,
    settled_state,
)

LEAF = {"annotations": {names.LEAF: "uid-leaf 2029-01-01T00:00:00.000000Z"}}


def swapped(found="uid-other", **given):
    """A Cluster with two nodes whose kubeconfig points to another cluster."""
    models = node_model("n1"), node_model("n2")
    tree = settled_state(*models, nodes=[leaf_node("n1"), leaf_node("n2")])
    health = given.pop("health", alive())
    tree = tree.with_(cluster=cluster("east", *models, metadata=LEAF))
    return tree.with_(leaf=Leaf(uid=found, is_other=True, is_connected=True, health=health, **given))


@pytest.mark.parametrize(
    ("recorded", "uid", "is_known", "expected"),
    [
        ("uid-leaf", "uid-leaf", True, False),
        ("uid-leaf", "uid-other", True, True),
        ("uid-leaf", "", True, True),
        ("uid-leaf", "", False, False),
        ("", "uid-other", True, False),
    ],
)
def test_a_leaf_is_another_when_it_is_not_the_recorded_one_or_does_not_say(recorded, uid, is_known, expected):
    noted = cluster(metadata={"annotations": {names.LEAF: f"{recorded} 2029" if recorded else ""}})

    assert is_other(noted, uid, is_known=is_known) is expected


def test_an_identity_change_removes_nothing_and_is_held_below_any_limit():
    tree = swapped()
    planned = tree.plan()

    braked = brake(planned.plan, Limit(nodes=1000), managed=2)

    assert reasons(planned) == [("east", "LeafReplaced")]
    assert ("east", "LeafIdentityChanged") in refused(planned)
    assert braked.now.actions == ()
    assert [each.reason for each in braked.held.actions] == ["LeafReplaced"]
    assert set(braked.held.actions[0].disrupts) == {"n1", "n2"}


def test_an_approved_exchange_is_recorded_and_the_nodes_follow_the_other_leaf():
    tree = swapped()

    noted = tree.after(tree.plan()).cluster
    after = tree.with_(cluster=noted, leaf=leaf(leaf_node("n1"), uid="uid-other")).plan()

    assert noted.metadata.annotations[names.LEAF].startswith("uid-other ")
    assert ("n2", "NodeRemoved") in reasons(after)
    assert ("n1", "NodeRemoved") not in reasons(after)


def without_held(planned):
    return msgspec.structs.replace(planned, plan=brake(planned.plan, Limit(), managed=2).now)


def test_an_approval_is_for_one_other_leaf():
    first = brake(swapped("uid-a").plan().plan, Limit(), managed=2).held
    second = brake(swapped("uid-b").plan().plan, Limit(), 2, (first.id,)).held

    assert second is not None


def test_the_lease_input_marks_another_cluster_than_the_recorded_leaf():
    snapshot = swapped().snapshot()
    unnamed = swapped("").snapshot()

    assert lease_input(snapshot, node_lease_inputs(snapshot, NOW)).is_other
    assert not lease_input(unnamed, node_lease_inputs(unnamed, NOW)).is_other


def test_after_the_grace_the_nodes_are_unknown_with_the_reason_and_a_new_replica_starts_there():
    tree = swapped(health=lost(is_rejected=True, rejected_since=NOW))

    tree = tree.after(without_held(tree.plan()))

    ready = tree.roots["n1"].condition("Ready")
    assert (ready.status, ready.reason) == ("Unknown", "LeafIdentityChanged")
    assert "uid-leaf" in ready.message
    assert "uid-other" in ready.message
    given = lease_input(tree.snapshot(), ())
    assert (given.is_given_up, given.is_rejected) == (True, True)


def test_why_names_both_leaves_and_the_remedy():
    decision = swapped().why(names.KIND, "east")

    assert decision.rule == "LeafIdentityChanged"
    assert "uid-leaf" in decision.facts.text()
    assert "RestoreKubeconfig" in remedies(decision)
