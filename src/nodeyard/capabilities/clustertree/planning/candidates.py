"""Candidates of a decision: the leaf nodes that count, their free resources, and why the others do not count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from nodeyard.capabilities.clustertree.planning import availability
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement
from nodeyard.capabilities.clustertree.planning.refusals import facts_of
from nodeyard.capabilities.clustertree.planning.resources import free
from nodeyard.capabilities.clustertree.planning.tree import Tree
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.kube.json import Object
from nodeyard.plan.model import Candidate


def of_cluster(tree: Tree) -> Iterator[Candidate]:
    """List every leaf node with the root's node that it counts for."""
    for node in tree.snapshot.leaf.nodes.values():
        holder = tree.membership.holders.get(node.name)
        refusal = None if holder is None else tree.refusal(holder)
        if earlier := tree.taken.by.get(node.name):
            yield _candidate(node, Reason.IN_OTHER_CLUSTER, {"leafNode": node.name, "by": earlier})
        elif holder is None:
            yield _candidate(node, Reason.NOT_SELECTED, {"leafNode": node.name, "cluster": tree.snapshot.cluster.name})
        elif refusal is not None:
            yield _candidate(node, refusal, facts_of(tree, holder))
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
        facts: Object = {"leafNode": node.name, "node": placement.name, "model": placement.model.title}
        if earlier := tree.taken.by.get(node.name):
            yield _candidate(node, Reason.IN_OTHER_CLUSTER, {**facts, "by": earlier})
        elif holder is not None and placement.model.selector.matches(node.metadata.labels):
            yield _candidate(node, Reason.IN_OTHER_MODEL, {**facts, "by": holder.model.title, "other": holder.name})
        else:
            yield _candidate(node, Reason.NOT_SELECTED, facts)


def _counted(tree: Tree, node: TreeNode, placement: Placement) -> Candidate:
    options = tree.snapshot.cluster.tree.resources
    reason = availability.reason(node, options)
    facts: Object = {
        "leafNode": node.name,
        "node": placement.name,
        "has": dict(node.status.allocatable),
        "free": dict(free((node,), tree.snapshot.leaf.usage, options).allocatable),
    }
    more = _MORE.get(reason)
    return _candidate(node, reason, facts if more is None else {**facts, **more(node)})


def _candidate(node: TreeNode, reason: Reason, facts: Object) -> Candidate:
    return Candidate(name=node.name, is_taken=reason is Reason.COUNTED, reason=reason.value, facts=facts)


def _readiness(node: TreeNode) -> Object:
    ready = node.condition(availability.READY)
    return {} if ready is None else {"status": ready.status, "why": ready.reason}


def _taints(node: TreeNode) -> Object:
    return {"taints": [f"{each.key}:{each.effect}" for each in node.spec.taints]}


_MORE: Mapping[Reason, Callable[[TreeNode], Object]] = {
    Reason.NOT_READY: _readiness,
    Reason.TAINTED: _taints,
    Reason.UNREADABLE: lambda node: {"error": availability.fault(node)},
}
