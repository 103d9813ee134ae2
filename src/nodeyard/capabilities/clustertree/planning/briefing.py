"""What the lease loop is told about the nodes: which there are, and which of them speak.

Every node that is ours has its lease, also one of a paused Cluster and one that is to go and waits for an approval: to
let a lease run out is to take a node's pods away, and that is decided by a plan, not by a pause.
"""

from __future__ import annotations

from datetime import datetime

from nodeyard.capabilities.clustertree.briefs import LeaseNode
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement, placements
from nodeyard.capabilities.clustertree.planning.ownership import is_adopted, is_going, ours
from nodeyard.capabilities.clustertree.planning.silence import is_silent
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot


def lease_nodes(snapshot: TreeSnapshot, now: datetime) -> tuple[LeaseNode, ...]:
    """By name."""
    placed = {each.name: each for each in placements(snapshot.cluster, snapshot.mirrors) if not each.rival}
    mirrors = ours(snapshot.mirrors, snapshot.cluster.name)
    return tuple(
        LeaseNode(name, node.metadata.uid, _is_alive(snapshot, placed.get(name), node, now), is_adopted(node))
        for name, node in sorted(mirrors.items())
        if not is_going(node)
    )


def _is_alive(snapshot: TreeSnapshot, placement: Placement | None, mirror: TreeNode, now: datetime) -> bool:
    """One that mirrors several leaf nodes lives as long as the leaf answers, which the loop finds out itself."""
    if placement is None or placement.model.mode is not Mode.NODE:
        return True
    return not is_silent(snapshot.leaf, placement.model.leaf_node, mirror, now)
