"""The nodes and templates of a snapshot, sorted into what each step works on, in one pass over the nodes."""

from __future__ import annotations

from dataclasses import dataclass

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.stock import Stock
from nodeyard.capabilities.spares.planning.templates import Resolved, resolve
from nodeyard.capabilities.spares.snapshot import SparesSnapshot, is_spare, template_of
from nodeyard.kube.objects import Node


@dataclass(frozen=True)
class Fleet:
    snapshot: SparesSnapshot
    templates: list[Resolved]
    """In the order in which they choose."""
    owned: dict[str, list[Node]]
    """By the template that the node names."""
    stock: Stock
    strays: list[Node]
    """Nodes that name a template which does not exist."""
    unmarked: list[Node]
    """Nodes that carry our spare label, but not the taint any more."""

    def nodes_of(self, template: Resolved) -> list[Node]:
        return self.owned.get(template.name, [])


def survey(snapshot: SparesSnapshot) -> Fleet:
    owned: dict[str, list[Node]] = {}
    spares: list[Node] = []
    unmarked: list[Node] = []
    for node in snapshot.nodes:
        owner = template_of(node)
        if owner is not None:
            owned.setdefault(owner, []).append(node)
        elif is_spare(node):
            spares.append(node)
        elif names.LABELLED in node.metadata.annotations:
            unmarked.append(node)
    known = {template.name for template in snapshot.templates}.union(snapshot.malformed)
    strays = [node for owner, nodes in owned.items() if owner not in known for node in nodes]
    templates = resolve(snapshot.templates)
    stock = Stock(spares, snapshot.pods, {template.selector for template in templates})
    return Fleet(snapshot, templates, owned, stock, strays, unmarked)
