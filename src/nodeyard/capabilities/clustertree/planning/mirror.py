"""One node of the root with all that has a say in it: what each part of it is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from nodeyard.capabilities.clustertree.planning.contact import Contact, contact
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement
from nodeyard.capabilities.clustertree.planning.silence import is_silent
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.kube.objects import ObjectMeta


@dataclass(frozen=True)
class Mirror:
    snapshot: TreeSnapshot
    placement: Placement
    members: tuple[TreeNode, ...]
    """The leaf nodes that it mirrors."""
    node: TreeNode | None
    """As it is; None where it is to be created."""
    now: datetime

    @property
    def present(self) -> TreeNode:
        """As it is, or nothing but its name."""
        return self.node or TreeNode(metadata=ObjectMeta(name=self.placement.name))

    @property
    def labels(self) -> Mapping[str, str]:
        return {} if self.node is None else self.node.metadata.labels

    def said(self, annotation: str) -> str:
        """What it says about itself; empty where nothing."""
        return "" if self.node is None else self.node.metadata.annotations.get(annotation, "")

    @property
    def is_single(self) -> bool:
        """It mirrors one leaf node by itself."""
        return self.placement.model.mode is Mode.NODE

    @property
    def is_silent(self) -> bool:
        """The leaf node that it mirrors by itself does not speak any more."""
        model = self.placement.model
        return self.is_single and is_silent(self.snapshot.leaf, model.leaf_node, self.node, self.now)

    def made_of(self) -> tuple[object, ...]:
        """All that has a say in what it is, but for when it was last written."""
        leaf = self.snapshot.leaf
        how = contact(leaf)
        return (
            self.node,
            self.snapshot.cluster,
            self.placement.model,
            leaf.version,
            how,
            leaf.finding if how is Contact.LOST else leaf.finding is None,
            self.is_silent,
            *self.members,
            *map(leaf.usage, (node.name for node in self.members)),
        )
