"""Plans one Cluster. Each step is a module of `planning`.

1. Resolve the models: the node of each model, and its leaf nodes.
2. Leave a paused Cluster unchanged. Remove the nodes, then the finalizer, of a Cluster that is deleted, disabled or the
   root itself. The Ready condition and the lease of a node follow the leaf until the node is deleted.
3. Set the resources of nodes that no model needs, or whose leaf node is gone, to zero, and remove them.
4. If the leaf has been listed, create, adopt or update every node.
5. If it has not, leave the nodes unchanged except for Ready. The same holds while the kubeconfig points to another
   cluster, until that is approved. Nodes of a model whose leaf nodes an earlier Cluster has offer nothing.
6. Report pods that nothing has acknowledged.
7. Explain the requested objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.messages import Paused
from nodeyard.capabilities.clustertree.planning import finalizers, nodes, refusals, removal
from nodeyard.capabilities.clustertree.planning.decisions import decide
from nodeyard.capabilities.clustertree.planning.heartbeat import next_check_at
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement
from nodeyard.capabilities.clustertree.planning.nodes import UnchangedNodes
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref, is_terminating
from nodeyard.capabilities.clustertree.planning.refusals import block_unacknowledged
from nodeyard.capabilities.clustertree.planning.renewals import next_update_at
from nodeyard.capabilities.clustertree.planning.tree import Tree, resolve
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import ObjectRef, Planned


def plan(snapshot: TreeSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    builder = PlanBuilder(now)
    tree = resolve(snapshot)
    why = removal.removal_reason(snapshot.cluster)
    if snapshot.cluster.is_paused:
        is_final = _plan_paused(builder, tree)
    else:
        is_final = _plan_removal(builder, tree, why) if why is not None else _plan_nodes(builder, tree)
    block_unacknowledged(builder, snapshot)
    decisions = [decision for ref in explain if (decision := decide(ref, tree, builder)) is not None]
    planned = builder.planned(names.CAPABILITY, snapshot.cluster.name, decisions)
    return msgspec.structs.replace(planned, is_final=is_final)


def _plan_paused(builder: PlanBuilder, tree: Tree) -> bool:
    """Update only the Ready condition of the nodes of a paused Cluster."""
    snapshot = tree.snapshot
    UnchangedNodes(snapshot.cluster.name).save()
    builder.block(cluster_ref(snapshot.cluster), Paused(cluster=snapshot.cluster.name))
    for node in tree.mirrors.values():
        if not is_terminating(node):
            _plan_readiness(builder, tree, node)
    if (again := next_update_at(snapshot, builder.now)) is not None:
        builder.wake(again)
    return True


def _plan_removal(builder: PlanBuilder, tree: Tree, why: Reason) -> bool:
    """Remove the Cluster's nodes and finalizer. Return True if nothing is left to do after this plan."""
    UnchangedNodes(tree.snapshot.cluster.name).save()
    for node in tree.mirrors.values():
        # The brake may hold the removal for days; Ready stays current meanwhile.
        after = () if is_terminating(node) else _plan_readiness(builder, tree, node)
        removal.remove_node(builder, tree.snapshot.cluster, node, why, after)
    if not tree.mirrors:
        finalizers.remove(builder, tree.snapshot.cluster)
    return not tree.mirrors


def _plan_nodes(builder: PlanBuilder, tree: Tree) -> bool:
    """Bring the Cluster's nodes to their desired state. Return True if nothing is left to do after this plan."""
    snapshot = tree.snapshot
    if (unknown := refusals.unavailable(snapshot)) is not None:
        builder.block(cluster_ref(snapshot.cluster), unknown)
    if snapshot.leaf.is_other:
        finalizers.replace_leaf(builder, snapshot, sorted(tree.mirrors))
    refusals.block_refused(builder, tree)
    unwanted = [each for each in tree.unwanted_nodes() if not is_terminating(each[0])]
    for node, why in unwanted:
        # The brake may hold this removal too.
        after = nodes.plan_empty(builder, snapshot, node)
        removal.remove_node(builder, snapshot.cluster, node, why, after)
    gone = {node.name for node, _ in unwanted}
    kept = [each for each in tree.placements if each.name not in gone and not each.rival and _may_be_kept(tree, each)]
    if not kept:
        return not unwanted
    after = finalizers.add(builder, snapshot)
    if (again := next_update_at(snapshot, builder.now)) is not None:
        builder.wake(again)
    unchanged = UnchangedNodes(snapshot.cluster.name)
    is_whole = [_plan_node(builder, tree, placement, unchanged, after) for placement in kept]
    unchanged.save()
    return all(is_whole) and not unwanted and not after


def _may_be_kept(tree: Tree, placement: Placement) -> bool:
    """Return True if the model has a node, or may get one."""
    mirror = tree.mirrors.get(placement.name)
    if mirror is not None:
        return not is_terminating(mirror)
    return tree.snapshot.leaf.is_synced and tree.refusal(placement) is None


def _plan_node(
    builder: PlanBuilder, tree: Tree, placement: Placement, unchanged: UnchangedNodes, after: tuple[str, ...]
) -> bool:
    snapshot = tree.snapshot
    node = tree.mirrors.get(placement.name)
    if node is not None and (placement.fault or not snapshot.leaf.is_synced):
        _plan_readiness(builder, tree, node)
        return True
    if node is not None and tree.refusal(placement) is Reason.LEAF_SHARED:
        nodes.plan_empty(builder, snapshot, node)
        return True
    if placement.model.mode is Mode.NODE:
        _requeue_at_lease_expiry(builder, tree, placement.model.leaf_node)
    members = tree.membership.of(placement)
    return nodes.plan_node(builder, Mirror(snapshot, placement, members, node, builder.now), unchanged, after)


def _plan_readiness(builder: PlanBuilder, tree: Tree, node: TreeNode) -> tuple[str, ...]:
    """Update only the Ready condition of the node."""
    placement = tree.placement(node.name)
    is_known = placement is not None and not placement.fault and tree.snapshot.leaf.is_synced
    _requeue_at_lease_expiry(builder, tree, node.name)
    members = tree.membership.of(placement) if placement is not None and is_known else None
    return nodes.plan_readiness(builder, tree.snapshot, node, members)


def _requeue_at_lease_expiry(builder: PlanBuilder, tree: Tree, leaf_node: str) -> None:
    """Wake up when the leaf node's lease expires; an expiry causes no event."""
    again = next_check_at(tree.snapshot.leaf, leaf_node, builder.now)
    if again is not None:
        builder.wake(again)
