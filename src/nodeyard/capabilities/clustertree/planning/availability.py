"""Decides which leaf nodes count: those on which the leaf's scheduler could place a pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import NOTHING, TreeNode, Usage
from nodeyard.capabilities.clustertree.types import ResourceOptions
from nodeyard.kube.conditions import TRUE
from nodeyard.kube.quantity import QuantityError
from nodeyard.kube.resource_list import parse_amounts
from nodeyard.kube.short_cache import cache_short
from nodeyard.kube.taints import NO_EXECUTE, NO_SCHEDULE

READY: Final = "Ready"


def reason(node: TreeNode, options: ResourceOptions, usage: Usage = NOTHING) -> Reason:
    """Return COUNTED, or the first reason against it."""
    ready = node.condition(READY)
    if ready is None or ready.status != TRUE:
        return Reason.NOT_READY
    if node.spec.unschedulable:
        return Reason.CORDONED
    if options.exclude_tainted and has_hard_taint(node):
        return Reason.TAINTED
    return Reason.UNREADABLE if fault(node, usage) else Reason.COUNTED


def has_hard_taint(node: TreeNode) -> bool:
    """Return True for a taint that repels pods; PreferNoSchedule does not."""
    return any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) for taint in node.spec.taints)


def allocatable(node: TreeNode) -> Mapping[str, int]:
    """Raises QuantityError: API servers reject invalid quantities, but stored objects may predate that check."""
    return _parsed(tuple(node.status.allocatable.items()))


def fault(node: TreeNode, usage: Usage = NOTHING) -> str:
    """Return the first invalid quantity with its field, or why its pods cannot be counted; empty if all is valid."""
    try:
        allocatable(node)
    except QuantityError as error:
        return f"status.allocatable.{error}"
    return usage.fault


def _length(resources: tuple[tuple[str, str], ...]) -> int:
    return sum(len(name) + len(text) for name, text in resources)


@cache_short(8192, _length)
def _parsed(resources: tuple[tuple[str, str], ...]) -> Mapping[str, int]:
    """Cached: most nodes change only their conditions, and many nodes are alike."""
    return parse_amounts(dict(resources))
