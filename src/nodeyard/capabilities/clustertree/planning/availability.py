"""Which leaf nodes count: those that the leaf's scheduler could place something on."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import ResourceOptions
from nodeyard.kube.amounts import parsed
from nodeyard.kube.conditions import TRUE
from nodeyard.kube.quantity import QuantityError
from nodeyard.kube.taints import NO_EXECUTE, NO_SCHEDULE

READY: Final = "Ready"


def reason(node: TreeNode, options: ResourceOptions) -> Reason:
    """COUNTED, or the first thing that speaks against it."""
    ready = node.condition(READY)
    if ready is None or ready.status != TRUE:
        return Reason.NOT_READY
    if node.spec.unschedulable:
        return Reason.CORDONED
    if options.exclude_tainted and has_hard_taint(node):
        return Reason.TAINTED
    return Reason.UNREADABLE if fault(node) else Reason.COUNTED


def has_hard_taint(node: TreeNode) -> bool:
    """Whether a taint keeps pods off that do not tolerate it; those that only prefer do not."""
    return any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) for taint in node.spec.taints)


def allocatable(node: TreeNode) -> Mapping[str, int]:
    """Raises QuantityError; a valid API server lets no such amount in, but what is stored may be older than that."""
    return _parsed(tuple(node.status.allocatable.items()))


def fault(node: TreeNode) -> str:
    """Which of its amounts is no quantity; empty where all are."""
    try:
        allocatable(node)
    except QuantityError as error:
        return f"status.allocatable.{error}"
    return ""


@lru_cache(maxsize=8192)
def _parsed(resources: tuple[tuple[str, str], ...]) -> Mapping[str, int]:
    """Of nodes that change in nothing but their conditions, and of nodes that are alike, once."""
    return parsed(dict(resources))
