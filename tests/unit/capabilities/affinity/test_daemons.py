"""Pods of DaemonSets, whose terms name their node instead of those of the template."""

import msgspec
import pytest
from tests.builders.applications import NAMESPACE, ZONE, affinity_class
from tests.builders.placements import (
    PlacementView,
    affinity_class_body,
    installed,
    namespace,
    node,
    pod,
    release,
    review,
    terms,
)

from nodeyard.capabilities.affinity.planning.classes import violators
from nodeyard.capabilities.affinity.planning.containment import node_of_daemon
from nodeyard.capabilities.affinity.reviews.pods import review_placement
from nodeyard.capabilities.affinity.watched import PlacedPod
from nodeyard.kube.node_affinity import NodeSelector
from nodeyard.kube.objects import ObjectMeta

AGENT = installed("apps/v1", "DaemonSet", "agent")
SET = installed("apps/v1", "StatefulSet", "main-db")
EITHER = terms((ZONE, "In", ["dc1"]), (ZONE, "In", ["dc2"]))
VIEW = PlacementView(
    AGENT,
    SET,
    release(affinity_class="either"),
    affinity_class_body("either", {}, nodeAffinity=EITHER),
    namespace(),
    node("in-dc2", "dc2"),
    node("in-dc3", "dc3"),
)


def named(*nodes, operator="In"):
    """Build required terms like the DaemonSet controller."""
    found = [{"matchFields": [{"key": "metadata.name", "operator": operator, "values": [each]}]} for each in nodes]
    return {"nodeSelectorTerms": found}


def bound(required, owner=AGENT):
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return pod("agent-x", [owner], spec={"affinity": affinity})


def test_a_pod_that_a_daemon_set_made_for_a_node_of_the_class_is_inside():
    assert review_placement(review(bound(named("in-dc2"))), VIEW).is_allowed


@pytest.mark.parametrize(
    "made",
    [
        bound(named("in-dc3")),
        bound(named("gone")),
        bound(named("in-dc2", "in-dc3")),
        bound(named("in-dc2", operator="NotIn")),
        bound(named("in-dc2"), SET),
        pod("agent-x", [AGENT]),
    ],
    ids=["outside", "a node that is not there", "two nodes", "any other node", "of no daemon set", "no node"],
)
def test_any_other_is_refused(made):
    response = review_placement(review(made), VIEW)

    assert not response.is_allowed
    assert "could run outside it" in response.message


def test_a_daemonset_pod_is_not_a_violator():
    either = affinity_class("either", {}, nodeAffinity=EITHER)
    nodes = {"in-dc2": {ZONE: "dc2"}, "in-dc3": {ZONE: "dc3"}}
    pods = [msgspec.convert(bound(named(each)), PlacedPod) for each in nodes]

    def node_of(name):
        return ObjectMeta(name=name, labels=nodes[name])

    assert violators(either, pods[:1], node_of) == []
    assert violators(either, pods[1:], node_of) == [f"{NAMESPACE}/agent-x"]


def test_a_pod_without_terms_was_made_for_no_node():
    metadata = msgspec.convert(bound(named("a"))["metadata"], ObjectMeta)

    assert node_of_daemon(metadata, None) == ""
    assert node_of_daemon(metadata, NodeSelector()) == ""
    assert node_of_daemon(metadata, msgspec.convert(named("a"), NodeSelector)) == "a"
