"""Partition of a snapshot's nodes: by owner, spares, and nodes that no template manages any more.

The owner's label alone does not make a node a member of its template, for a kubelet may register with it. A claim or an
adoption writes a record that names the template, in the same patch as the label. A node without such a record is
adopted, in name order, while the template has fewer nodes than `spec.nodes`. The adoption is recorded, so a later node
does not displace it. All other labelled nodes are refused and left unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.record import is_recorded
from nodeyard.capabilities.spares.planning.spare_index import SpareIndex
from nodeyard.capabilities.spares.planning.templates import Resolved, resolve
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_spare, owner_elsewhere, template_of
from nodeyard.kube.objects import Node


@dataclass(frozen=True)
class Partition:
    snapshot: SparesSnapshot
    templates: list[Resolved]
    """By descending priority, then by name."""
    owned: dict[str, list[Node]]
    """By the template in the owner's label."""
    spares: SpareIndex
    orphans: list[Node]
    """Nodes whose owner's label names a template that does not exist."""
    disowned: dict[str, list[Node]]
    """Nodes with a record that a template moved out of management, by its name."""
    untainted: list[Node]
    """Nodes with Nodeyard's spare label that have lost the spare taint."""

    def nodes_of(self, template: Resolved) -> list[Node]:
        return self.owned.get(template.name, [])


def partition(snapshot: SparesSnapshot) -> Partition:
    """Partition the nodes in one pass."""
    owned: dict[str, list[Node]] = {}
    spares: list[Node] = []
    untainted: list[Node] = []
    disowned: dict[str, list[Node]] = {}
    for node in snapshot.nodes:
        owner = template_of(node)
        if owner is not None:
            owned.setdefault(owner, []).append(node)
        elif is_spare(node):
            spares.append(node)
        elif names.LABELLED in node.metadata.annotations:
            untainted.append(node)
        elif _can_return(node):
            disowned.setdefault(node.metadata.labels[names.OUT_LABEL], []).append(node)
    known = {template.name for template in snapshot.templates}.union(snapshot.malformed)
    orphans = [node for owner, nodes in owned.items() if owner not in known for node in nodes]
    templates = resolve(snapshot.templates)
    index = SpareIndex(spares, snapshot.pods, {template.selector for template in templates})
    return Partition(snapshot, templates, owned, index, orphans, disowned, untainted)


def _can_return(node: Node) -> bool:
    metadata = node.metadata
    if names.OUT_LABEL not in metadata.labels or names.RECORD not in metadata.annotations:
        return False
    return metadata.deletion_timestamp is None and not owner_elsewhere(node)


class Members(NamedTuple):
    """The nodes that have a template's label and match its selector."""

    kept: list[Node]
    """Nodes of the template."""
    refused: list[Node]
    """Nodes without a record, beyond `spec.nodes`."""


def members_of(template: Resolved, nodes: Iterable[Node]) -> Members:
    """Split the nodes with the template's label. Nodes that the selector does not match are in neither list."""
    matching = [node for node in nodes if template.matches(node)]
    unrecorded = [node for node in matching if not is_recorded(node, template.name)]
    if not unrecorded:
        return Members(matching, [])
    room = max(0, template.desired - (len(matching) - len(unrecorded)))
    refused = sorted(unrecorded, key=lambda node: node.metadata.name)[room:]
    refused_names = {node.metadata.name for node in refused}
    return Members([node for node in matching if node.metadata.name not in refused_names], refused)
