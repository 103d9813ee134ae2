"""Leaf nodes that count, and the reasons of those that do not."""

from __future__ import annotations

import pytest
from tests.builders.memory import kept_bytes

from nodeyard.capabilities.clustertree.planning.availability import allocatable, fault, reason
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import ResourceOptions
from nodeyard.kube.quantity import NANO, QuantityError

from ....builders.leaf_resources import leaf_node

STRICT = ResourceOptions(exclude_tainted=True)

CASES = {
    "a ready node counts": (leaf_node(), Reason.COUNTED, Reason.COUNTED),
    "a node that is not ready does not": (leaf_node(ready="False"), Reason.NOT_READY, Reason.NOT_READY),
    "nor one that nobody has heard of": (leaf_node(ready="Unknown"), Reason.NOT_READY, Reason.NOT_READY),
    "nor one that has not said it is": (leaf_node(ready=None), Reason.NOT_READY, Reason.NOT_READY),
    "nor one that is cordoned": (leaf_node(cordoned=True), Reason.CORDONED, Reason.CORDONED),
    "not being ready is said first": (leaf_node(ready="False", cordoned=True), Reason.NOT_READY, Reason.NOT_READY),
    "one that refuses pods counts unless asked not to": (
        leaf_node(taints=("NoSchedule",)),
        Reason.COUNTED,
        Reason.TAINTED,
    ),
    "one that evicts pods counts unless asked not to": (
        leaf_node(taints=("PreferNoSchedule", "NoExecute")),
        Reason.COUNTED,
        Reason.TAINTED,
    ),
    "one that is only avoided counts": (leaf_node(taints=("PreferNoSchedule",)), Reason.COUNTED, Reason.COUNTED),
    "one that cannot be read does not": (leaf_node(allocatable={"cpu": "x"}), Reason.UNREADABLE, Reason.UNREADABLE),
}


@pytest.mark.parametrize(("node", "by_default", "strictly"), CASES.values(), ids=CASES.keys())
def test_which_nodes_count(node: TreeNode, by_default: Reason, strictly: Reason) -> None:
    assert reason(node, ResourceOptions()) is by_default
    assert reason(node, STRICT) is strictly


def test_unreadable_values_are_named_by_field_and_value() -> None:
    node = leaf_node(allocatable={"cpu": "1", "memory": "1 Gi"})
    assert fault(node).startswith("status.allocatable.memory: '1 Gi': quantities must match")
    with pytest.raises(QuantityError):
        allocatable(node)


def test_readable_values_are_returned_as_numbers() -> None:
    node = leaf_node(allocatable={"cpu": "2", "pods": "110"})
    assert fault(node) == ""
    assert allocatable(node) == {"cpu": 2 * NANO, "pods": 110 * NANO}


def test_amounts_under_names_that_are_too_long_for_any_server_are_not_remembered() -> None:
    nodes = (leaf_node(allocatable={f"{number:0100000d}": "1"}) for number in range(100))

    assert kept_bytes(lambda: [fault(node) for node in nodes]) < 1_000_000
