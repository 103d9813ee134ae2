"""Which leaf nodes each model takes. A leaf node counts once, whatever the models say.

Models that name one node take theirs first, then parties in the order of the list, then the whole cluster takes what is
left. A party that selects what another has already is told of, since its node is smaller than its selector suggests;
one that selects everything means the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nodeyard.capabilities.clustertree.planning.models import Mode, Placement
from nodeyard.capabilities.clustertree.snapshot import TreeNode

_TURNS = (Mode.NODE, Mode.PARTY, Mode.WHOLE)


@dataclass(frozen=True)
class Overlap:
    """Leaf nodes that a model selects and another has."""

    placement: Placement
    by: Placement
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Membership:
    members: Mapping[str, tuple[TreeNode, ...]] = field(default_factory=dict)
    """By the root node that mirrors them; every model that gets a node is there."""
    holders: Mapping[str, Placement] = field(default_factory=dict)
    """Who has a leaf node, by its name."""
    overlaps: tuple[Overlap, ...] = ()

    def of(self, placement: Placement) -> tuple[TreeNode, ...]:
        return self.members.get(placement.name, ())


def share_out(placements: Sequence[Placement], nodes: Mapping[str, TreeNode]) -> Membership:
    sound = [each for each in placements if not each.fault and not each.rival]
    holders: dict[str, Placement] = {}
    members: dict[str, tuple[TreeNode, ...]] = {}
    overlaps: list[Overlap] = []
    for placement in sorted(sound, key=lambda each: (_TURNS.index(each.model.mode), each.model.position)):
        selected = _selected(placement, nodes)
        own = tuple(node for node in selected if node.name not in holders)
        overlaps += _overlaps(placement, selected, holders)
        holders |= {node.name: placement for node in own}
        members[placement.name] = own
    return Membership(members, holders, tuple(overlaps))


def _selected(placement: Placement, nodes: Mapping[str, TreeNode]) -> Sequence[TreeNode]:
    model = placement.model
    match model.mode:
        case Mode.NODE:
            node = nodes.get(model.leaf_node)
            return () if node is None else (node,)
        case Mode.PARTY:
            return [node for node in nodes.values() if model.selector.matches(node.metadata.labels)]
        case Mode.WHOLE:
            return tuple(nodes.values())


def _overlaps(placement: Placement, selected: Sequence[TreeNode], holders: Mapping[str, Placement]) -> list[Overlap]:
    model = placement.model
    if model.mode is not Mode.PARTY or model.selector.empty:
        return []
    lost: dict[str, list[str]] = {}
    for node in selected:
        if node.name in holders:
            lost.setdefault(holders[node.name].name, []).append(node.name)
    by_name = {each.name: each for each in holders.values()}
    return [Overlap(placement, by_name[name], tuple(nodes)) for name, nodes in lost.items()]
