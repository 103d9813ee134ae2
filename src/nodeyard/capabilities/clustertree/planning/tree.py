"""A Cluster's models resolved against what there is: which node each is, and which leaf nodes it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from nodeyard.capabilities.clustertree.planning.claims import NOTHING_TAKEN, Taken
from nodeyard.capabilities.clustertree.planning.membership import Membership, share_out, taken_by
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement, placements
from nodeyard.capabilities.clustertree.planning.ownership import is_adopted, ours
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot


@dataclass(frozen=True)
class Tree:
    snapshot: TreeSnapshot
    placements: tuple[Placement, ...]
    membership: Membership
    mirrors: Mapping[str, TreeNode]
    """The nodes that are ours, by name."""
    taken: Taken
    """What elder Clusters have of the leaf."""

    @cached_property
    def refused(self) -> Mapping[int, Reason]:
        """Why a model gets no node, or not a better one than it has; by its position."""
        found = ((each.model.position, self._refusal(each)) for each in self.placements)
        return {position: reason for position, reason in found if reason is not None}

    def refusal(self, placement: Placement) -> Reason | None:
        return self.refused.get(placement.model.position)

    def placement(self, node: str) -> Placement | None:
        """The model that a node of the root mirrors."""
        return next((each for each in self.placements if each.name == node and not each.rival), None)

    def stranger(self, name: str) -> TreeNode | None:
        """A node of the root that is called as one of ours should be, and is not ours."""
        if name in self.mirrors:
            return None
        return self.snapshot.strangers.get(name) or self.snapshot.mirrors.get(name)

    def leaving(self) -> Iterator[tuple[TreeNode, Reason | None]]:
        """Nodes that no model asks for, or whose leaf node is gone; with the reason of the latter.

        One that Kosmos made stays until the leaf has been listed here: a Cluster that we cannot reach is no reason."""
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
        if self.stranger(placement.name) is not None:
            return Reason.NAME_TAKEN
        if placement.name in self.membership.outranked:
            return Reason.LEAF_SHARED
        is_missing = placement.model.mode is Mode.NODE and not self.membership.of(placement)
        return Reason.LEAF_NODE_MISSING if is_missing and self.snapshot.leaf.is_synced else None


def resolve(snapshot: TreeSnapshot) -> Tree:
    cluster = snapshot.cluster
    placed = placements(cluster, snapshot.mirrors)
    taken = taken_by(snapshot.elders, snapshot.leaf.nodes) if snapshot.leaf.is_synced else NOTHING_TAKEN
    members = share_out(placed, snapshot.leaf.nodes, taken)
    return Tree(snapshot, placed, members, ours(snapshot.mirrors, cluster.name), taken)
