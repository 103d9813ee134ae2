"""One Cluster, planned: the table of contents. Each step is a module of `planning`.

1. The models are resolved: which node each is, and which leaf nodes it takes.
2. A Cluster that is deleted, switched off or the root itself loses its nodes, and then its finalizer.
3. Nodes that no model asks for any more, or whose leaf node is gone, offer nothing from here on, and go.
4. Of a leaf that has been listed every node is created, taken over or brought up to date.
5. Of one that has not, the nodes stay as they are, but for what the line tells. So do those of a model whose leaf nodes
   an elder Cluster has, and offer nothing.
6. Pods that nobody has taken up are told of.
7. What somebody asks about is explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning import finalizers, nodes, refusals, removal
from nodeyard.capabilities.clustertree.planning.decisions import decide
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref, is_going
from nodeyard.capabilities.clustertree.planning.pods import tell_waiting
from nodeyard.capabilities.clustertree.planning.renewals import shown_again_at
from nodeyard.capabilities.clustertree.planning.silence import look_again_at
from nodeyard.capabilities.clustertree.planning.steady import Steady
from nodeyard.capabilities.clustertree.planning.tree import Tree, resolve
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import ObjectRef, Planned


def plan(snapshot: TreeSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    draft = Draft(now)
    tree = resolve(snapshot)
    why = removal.ending(snapshot.cluster)
    is_final = _end(draft, tree, why) if why is not None else _grow(draft, tree)
    tell_waiting(draft, snapshot)
    decisions = [decision for ref in explain if (decision := decide(ref, tree, draft)) is not None]
    planned = draft.planned(names.CAPABILITY, snapshot.cluster.name, decisions)
    return msgspec.structs.replace(planned, is_final=is_final)


def _end(draft: Draft, tree: Tree, why: Reason) -> bool:
    """Take the Cluster out of the root; whether nothing is left of it then."""
    Steady(tree.snapshot.cluster.name).remember()
    for node in tree.mirrors.values():
        removal.remove_node(draft, tree.snapshot.cluster, node, why)
    if not tree.mirrors:
        finalizers.remove(draft, tree.snapshot.cluster)
    return not tree.mirrors


def _grow(draft: Draft, tree: Tree) -> bool:
    """Make the Cluster's nodes what they should be; whether all of it is in this plan."""
    snapshot = tree.snapshot
    if (unknown := refusals.out_of_touch(snapshot)) is not None:
        draft.block(cluster_ref(snapshot.cluster), *unknown)
    refusals.refuse(draft, tree)
    leaving = [each for each in tree.leaving() if not is_going(each[0])]
    for node, why in leaving:
        # The brake may hold the removal for days.
        after = nodes.empty(draft, snapshot, node, is_gone=why is Reason.LEAF_NODE_MISSING)
        removal.remove_node(draft, snapshot.cluster, node, why, after)
    gone = {node.name for node, _ in leaving}
    kept = [each for each in tree.placements if each.name not in gone and not each.rival and _may_be_kept(tree, each)]
    if not kept:
        return not leaving
    after = finalizers.add(draft, snapshot)
    if (again := shown_again_at(snapshot, draft.now)) is not None:
        draft.wake(again)
    steady = Steady(snapshot.cluster.name)
    is_whole = [_keep(draft, tree, placement, steady, after) for placement in kept]
    steady.remember()
    return all(is_whole) and not leaving and not after


def _may_be_kept(tree: Tree, placement: Placement) -> bool:
    """Whether the model has a node, or may get one."""
    mirror = tree.mirrors.get(placement.name)
    if mirror is not None:
        return not is_going(mirror)
    return tree.snapshot.leaf.is_synced and tree.refusal(placement) is None


def _keep(draft: Draft, tree: Tree, placement: Placement, steady: Steady, after: tuple[str, ...]) -> bool:
    snapshot = tree.snapshot
    node = tree.mirrors.get(placement.name)
    if node is not None and (placement.fault or not snapshot.leaf.is_synced):
        nodes.keep_unseen(draft, snapshot, node)
        return True
    if node is not None and tree.refusal(placement) is Reason.LEAF_SHARED:
        nodes.empty(draft, snapshot, node)
        return True
    if placement.model.mode is Mode.NODE:
        again = look_again_at(snapshot.leaf, placement.model.leaf_node, draft.now)
        if again is not None:
            draft.wake(again)
    members = tree.membership.of(placement)
    return nodes.keep(draft, Mirror(snapshot, placement, members, node, draft.now), steady, after)
