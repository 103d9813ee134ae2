"""Events: created and removed nodes, lost and restored contact, pending pods; none for updates of a node."""

from __future__ import annotations

import msgspec
from tests.builders.trees import (
    NOW,
    Yard,
    bound,
    cluster,
    grown,
    leaf,
    leaf_node,
    left_by_kosmos,
    lost,
    one,
    used,
)

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.clustertree.report.events import events
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.objects import Condition

N1 = leaf_node("n1")


def said(yard, result=Result.DONE):
    planned = yard.plan().plan
    results = tuple(ActionResult(action=each, result=result, message="boom") for each in planned.actions)
    return events(yard.seen(), planned, Outcome(results=results))


def reasons(yard, result=Result.DONE):
    return [(each.object.kind, each.type, each.reason) for each in said(yard, result)]


def test_a_node_that_is_made_is_told_on_its_cluster():
    assert reasons(Yard(cluster("east"), leaf(N1))) == [("Cluster", "Normal", "NodeCreated")]


def test_many_nodes_are_one_event():
    nodes = [leaf_node(f"n{number}") for number in range(9)]
    (event,) = said(Yard(cluster("east", *(one(each.name) for each in nodes)), leaf(*nodes)))

    assert event.message.endswith("(and 8 other nodes)")


def test_an_adopted_node_is_told():
    yard = Yard(cluster("east"), leaf(N1)).with_roots(left_by_kosmos("kosmos-east"))

    assert ("Cluster", "Normal", "NodeAdopted") in reasons(yard)


def test_that_a_node_follows_its_leaf_is_no_event():
    yard = grown(nodes=[N1])

    assert reasons(yard.with_(leaf=leaf(N1, used={"n1": used(1, cpu="1")}))) == []


def test_a_failure_is_a_warning_with_what_was_said():
    (event,) = said(Yard(cluster("east"), leaf(N1)), Result.FAILED)

    assert (event.type, event.reason) == ("Warning", "NodeCreatedFailed")
    assert event.message == "Node kosmos-east: boom"


def test_a_lost_leaf_stands_as_a_warning_and_a_found_one_is_told_once():
    yard = grown(nodes=[N1])
    gone = [each for each in said(yard.with_(leaf=leaf(N1, health=lost()))) if each.reason == "LeafUnreachable"]
    assert [(each.type, each.is_standing) for each in gone] == [("Warning", True)]

    before = Condition(type="Reachable", status="False", reason="LeafUnreachable")
    assert ("Cluster", "Normal", "LeafReachable") in reasons(yard.with_(cluster=saying(yard.cluster, before)))
    well = Condition(type="Reachable", status="True", reason="LeafReachable")
    assert reasons(yard.with_(cluster=saying(yard.cluster, well))) == []


def saying(known: Cluster, condition: Condition) -> Cluster:
    status = msgspec.structs.replace(known.status, conditions=(condition,))
    return msgspec.structs.replace(known, status=status)


def test_a_pod_that_waits_is_told_on_the_pod():
    yard = grown(nodes=[N1]).later(100).with_(pending_pods=(bound("a", "kosmos-east", NOW),))

    (event,) = [each for each in said(yard) if each.object.kind == "Pod"]

    assert (event.object.namespace, event.object.name, event.reason) == ("shop", "a", "PodUnacknowledged")
    assert event.is_standing
