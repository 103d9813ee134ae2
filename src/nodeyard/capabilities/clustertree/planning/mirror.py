"""A mirrored node with all inputs of its desired state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from nodeyard.capabilities.clustertree.leases.liveness import State
from nodeyard.capabilities.clustertree.planning.heartbeat import is_silent
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement
from nodeyard.capabilities.clustertree.snapshot import Leaf, TreeNode, TreeSnapshot
from nodeyard.kube.objects import ObjectMeta


class Contact(Enum):
    """Knowledge about the nodes of a leaf that the state of the contact allows."""

    BY_LEAF = "by leaf"
    """The leaf responds: its nodes are as it reports."""
    KEPT = "kept"
    """The leaf may be gone, or responds without access: its nodes keep their last state."""
    LOST = "lost"
    """The leaf has not responded for too long: the state of its nodes is unknown."""


def contact(leaf: Leaf) -> Contact:
    health = leaf.health
    if health is None:
        return Contact.BY_LEAF if leaf.is_connected and leaf.is_synced else Contact.KEPT
    if health.state is State.UNREACHABLE:
        return Contact.LOST
    return Contact.BY_LEAF if health.state is State.ALIVE and leaf.is_synced else Contact.KEPT


@dataclass(frozen=True)
class Mirror:
    snapshot: TreeSnapshot
    placement: Placement
    members: tuple[TreeNode, ...]
    """Its leaf nodes."""
    node: TreeNode | None
    """The present node; None if it is to be created."""
    now: datetime

    @property
    def present(self) -> TreeNode:
        """The present node, or an empty one with the name."""
        return self.node or TreeNode(metadata=ObjectMeta(name=self.placement.name))

    @property
    def labels(self) -> Mapping[str, str]:
        return {} if self.node is None else self.node.metadata.labels

    def annotation(self, key: str) -> str:
        """Return an annotation of the present node; empty if it is not set."""
        return "" if self.node is None else self.node.metadata.annotations.get(key, "")

    @property
    def is_single(self) -> bool:
        """True if it mirrors exactly one leaf node, by name."""
        return self.placement.model.mode is Mode.NODE

    @property
    def is_silent(self) -> bool:
        """Its single leaf node has stopped reporting."""
        model = self.placement.model
        return self.is_single and is_silent(self.snapshot.leaf, model.leaf_node, self.node, self.now)

    def inputs(self) -> tuple[object, ...]:
        """Everything that the desired state depends on, except the time of the last write."""
        leaf = self.snapshot.leaf
        how = contact(leaf)
        return (
            self.node,
            self.snapshot.cluster,
            self.placement.model,
            leaf.version,
            how,
            leaf.health if how is Contact.LOST else leaf.health is None,
            self.is_silent,
            *self.members,
            *map(leaf.usage, (node.name for node in self.members)),
        )
