"""Candidates of a decision: the leaf nodes that count, their free resources, and why the others do not count."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.clustertree.messages import (
    Cordoned,
    Counted,
    InOtherCluster,
    InOtherModel,
    NotReady,
    NotSelected,
    Tainted,
    TreeMessage,
    Unreadable,
)
from nodeyard.capabilities.clustertree.planning import availability
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement
from nodeyard.capabilities.clustertree.planning.refusals import refusal
from nodeyard.capabilities.clustertree.planning.resources import free
from nodeyard.capabilities.clustertree.planning.tree import Tree
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.plan.model import Candidate


def of_cluster(tree: Tree) -> Iterator[Candidate]:
    """List every leaf node with the root's node that it counts for."""
    for node in tree.snapshot.leaf.nodes.values():
        holder = tree.membership.holders.get(node.name)
        refused = None if holder is None else refusal(tree, holder)
        if earlier := tree.taken.by.get(node.name):
            yield Candidate.of(node.name, InOtherCluster(by=earlier))
        elif holder is None:
            yield Candidate.of(node.name, NotSelected(cluster=tree.snapshot.cluster.name))
        elif refused is not None:
            yield Candidate.of(node.name, refused)
        else:
            yield _counted(tree, node, holder)


def of_node(tree: Tree, placement: Placement) -> Iterator[Candidate]:
    """List every leaf node as this model sees it. A model that names its leaf node considers no others."""
    nodes = tree.snapshot.leaf.nodes.values()
    for node in tree.membership.of(placement) if placement.model.mode is Mode.NODE else nodes:
        holder = tree.membership.holders.get(node.name)
        if holder is placement:
            yield _counted(tree, node, placement)
            continue
        model = placement.model
        if earlier := tree.taken.by.get(node.name):
            yield Candidate.of(node.name, InOtherCluster(by=earlier))
        elif holder is not None and model.selector.matches(node.metadata.labels):
            other = InOtherModel(model=model.title, by=holder.model.title, other=holder.name)
            yield Candidate.of(node.name, other)
        else:
            yield Candidate.of(node.name, NotSelected(node=placement.name, model=model.title))


def _counted(tree: Tree, node: TreeNode, placement: Placement) -> Candidate:
    options = tree.snapshot.cluster.tree.resources
    message = _message(node, placement.name, availability.reason(node, options))
    if message is None:
        free_now = dict(free((node,), tree.snapshot.leaf.usage, options).allocatable)
        message = Counted(node=placement.name, has=dict(node.status.allocatable), free=free_now)
    return Candidate.of(node.name, message, is_taken=isinstance(message, Counted))


def _message(node: TreeNode, mirror: str, reason: Reason) -> TreeMessage | None:
    """Return why a leaf node adds nothing; None if it counts."""
    has = dict(node.status.allocatable)
    match reason:
        case Reason.NOT_READY:
            ready = node.condition(availability.READY)
            if ready is None:
                return NotReady(node=mirror, has=has)
            return NotReady(node=mirror, has=has, status=ready.status, ready_reason=ready.reason)
        case Reason.CORDONED:
            return Cordoned(node=mirror, has=has)
        case Reason.TAINTED:
            taints = tuple(f"{each.key}:{each.effect}" for each in node.spec.taints)
            return Tainted(node=mirror, has=has, taints=taints)
        case Reason.UNREADABLE:
            return Unreadable(node=mirror, has=has, error=availability.fault(node))
    return None
