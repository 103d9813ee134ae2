"""Events: created and removed nodes, lost and restored contact, pending pods; none for updates of a node."""

from __future__ import annotations

import msgspec
from tests.builders.tree_state import (
    NOW,
    TreeState,
    bound,
    cluster,
    leaf,
    leaf_node,
    left_by_kosmos,
    lost,
    node_model,
    settled_state,
    used,
)

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.clustertree.report.events import events
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.objects import Condition

N1 = leaf_node("n1")


def said(tree, result=Result.DONE):
    planned = tree.plan().plan
    results = tuple(ActionResult(action=each, result=result, message="boom") for each in planned.actions)
    return events(tree.snapshot(), planned, Outcome(results=results))


def reasons(tree, result=Result.DONE):
    return [(each.object.kind, each.type, each.reason) for each in said(tree, result)]


def test_a_created_node_is_an_event_on_its_cluster():
    assert reasons(TreeState(cluster("east"), leaf(N1))) == [("Cluster", "Normal", "NodeCreated")]


def test_many_nodes_are_one_event():
    nodes = [leaf_node(f"n{number}") for number in range(9)]
    (event,) = said(TreeState(cluster("east", *(node_model(each.name) for each in nodes)), leaf(*nodes)))

    assert event.message.endswith("(and 8 other nodes)")


def test_an_adopted_node_is_an_event():
    tree = TreeState(cluster("east"), leaf(N1)).with_roots(left_by_kosmos("kosmos-east"))

    assert ("Cluster", "Normal", "NodeAdopted") in reasons(tree)


def test_that_a_node_follows_its_leaf_is_no_event():
    tree = settled_state(nodes=[N1])

    assert reasons(tree.with_(leaf=leaf(N1, used={"n1": used(1, cpu="1")}))) == []


def test_a_failure_is_a_warning_with_the_message_of_the_server():
    (event,) = said(TreeState(cluster("east"), leaf(N1)), Result.FAILED)

    assert (event.type, event.reason) == ("Warning", "NodeCreatedFailed")
    assert event.message == "Node kosmos-east: boom"


def test_a_lost_leaf_is_a_repeated_warning_and_a_restored_one_a_single_event():
    tree = settled_state(nodes=[N1])
    gone = [each for each in said(tree.with_(leaf=leaf(N1, health=lost()))) if each.reason == "LeafUnreachable"]
    assert [(each.type, each.is_standing) for each in gone] == [("Warning", True)]

    before = Condition(type="Reachable", status="False", reason="LeafUnreachable")
    assert ("Cluster", "Normal", "LeafReachable") in reasons(tree.with_(cluster=saying(tree.cluster, before)))
    well = Condition(type="Reachable", status="True", reason="LeafReachable")
    assert reasons(tree.with_(cluster=saying(tree.cluster, well))) == []


def saying(known: Cluster, condition: Condition) -> Cluster:
    status = msgspec.structs.replace(known.status, conditions=(condition,))
    return msgspec.structs.replace(known, status=status)


def test_a_pending_pod_is_an_event_on_the_pod():
    tree = settled_state(nodes=[N1]).later(100).with_(pending_pods=(bound("a", "kosmos-east", NOW),))

    (event,) = [each for each in said(tree) if each.object.kind == "Pod"]

    assert (event.object.namespace, event.object.name, event.reason) == ("shop", "a", "PodUnacknowledged")
    assert event.is_standing
