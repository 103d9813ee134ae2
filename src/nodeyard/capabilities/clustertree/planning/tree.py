"""The models of a Cluster, resolved: the node of each, and its leaf nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from nodeyard.capabilities.clustertree.planning.leaf_ownership import NO_NODES_TAKEN, TakenNodes
from nodeyard.capabilities.clustertree.planning.membership import Membership, assign, taken_nodes
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement, placements
from nodeyard.capabilities.clustertree.planning.ownership import is_adopted, mirrors_of
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot


@dataclass(frozen=True)
class Tree:
    snapshot: TreeSnapshot
    placements: tuple[Placement, ...]
    membership: Membership
    mirrors: Mapping[str, TreeNode]
    """The Cluster's nodes, by name."""
    taken: TakenNodes
    """Leaf nodes of earlier Clusters."""

    @cached_property
    def refused(self) -> Mapping[int, Reason]:
        """Why a model gets no node, or why its node is not updated; by position of the model."""
        found = ((each.model.position, self._refusal(each)) for each in self.placements)
        return {position: reason for position, reason in found if reason is not None}

    def refusal(self, placement: Placement) -> Reason | None:
        return self.refused.get(placement.model.position)

    def placement(self, node: str) -> Placement | None:
        """Return the model of a node of the root."""
        return next((each for each in self.placements if each.name == node and not each.rival), None)

    def conflicting_node(self, name: str) -> TreeNode | None:
        """Return the node of the root that has the name and does not belong to the Cluster."""
        if name in self.mirrors:
            return None
        return self.snapshot.conflicting_nodes.get(name) or self.snapshot.mirrors.get(name)

    def unwanted_nodes(self) -> Iterator[tuple[TreeNode, Reason | None]]:
        """List nodes that no model asks for (reason None), or whose leaf node is gone.

        Kosmos' nodes stay until the leaf has been listed: an unreachable leaf is no reason to remove them.
        """
        wanted = {each.name: each for each in self.placements if not each.rival}
        for name, node in self.mirrors.items():
            placement = wanted.get(name)
            if placement is None:
                if is_adopted(node) or self.snapshot.leaf.is_synced:
                    yield node, None
            elif self.refusal(placement) is Reason.LEAF_NODE_MISSING:
                yield node, Reason.LEAF_NODE_MISSING

    def _refusal(self, placement: Placement) -> Reason | None:
        if placement.fault:
            return Reason.INVALID_MODEL
        if placement.rival:
            return Reason.MODELS_OVERLAP
        if self.conflicting_node(placement.name) is not None:
            return Reason.NAME_TAKEN
        if placement.name in self.membership.outranked:
            return Reason.LEAF_SHARED
        is_missing = placement.model.mode is Mode.NODE and not self.membership.of(placement)
        return Reason.LEAF_NODE_MISSING if is_missing and self.snapshot.leaf.is_synced else None


def resolve(snapshot: TreeSnapshot) -> Tree:
    cluster = snapshot.cluster
    placed = placements(cluster, snapshot.mirrors)
    taken = taken_nodes(snapshot.earlier_clusters, snapshot.leaf.nodes) if snapshot.leaf.is_synced else NO_NODES_TAKEN
    members = assign(placed, snapshot.leaf.nodes, taken)
    return Tree(snapshot, placed, members, mirrors_of(snapshot.mirrors, cluster.name), taken)
