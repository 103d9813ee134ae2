"""Which leaf nodes each model takes. A leaf node counts once, whatever the models say, and whosever they are.

Models that name one node take theirs first, then parties in the order of the list, then the whole cluster takes what is
left. A party that selects what another has already is told of, since its node is smaller than its selector suggests;
one that selects everything means the rest. What an elder Cluster has of the leaf comes before all of these, and a model
that it leaves nothing to makes no node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nodeyard.capabilities.clustertree.planning.claims import NOTHING_TAKEN, Taken
from nodeyard.capabilities.clustertree.planning.models import Mode, Model, Placement, placements
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import Cluster

_TURNS = (Mode.NODE, Mode.PARTY, Mode.WHOLE)


@dataclass(frozen=True)
class Overlap:
    """Leaf nodes that a model selects and another has."""

    placement: Placement
    by: str
    """The other model, or the other Cluster, as texts call it."""
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Membership:
    members: Mapping[str, tuple[TreeNode, ...]] = field(default_factory=dict)
    """By the root node that mirrors them; every model that gets a node is there."""
    holders: Mapping[str, Placement] = field(default_factory=dict)
    """Who has a leaf node, by its name."""
    overlaps: tuple[Overlap, ...] = ()
    outranked: Mapping[str, str] = field(default_factory=dict)
    """The Cluster that leaves a model nothing, by the root node that would mirror it."""

    def of(self, placement: Placement) -> tuple[TreeNode, ...]:
        return self.members.get(placement.name, ())


def share_out(placed: Sequence[Placement], nodes: Mapping[str, TreeNode], taken: Taken = NOTHING_TAKEN) -> Membership:
    holders: dict[str, Placement] = {}
    members: dict[str, tuple[TreeNode, ...]] = {}
    overlaps: list[Overlap] = []
    outranked: dict[str, str] = {}
    for placement in sorted(_sound(placed), key=lambda each: (_TURNS.index(each.model.mode), each.model.position)):
        selected = _selected(placement, nodes)
        own = tuple(node for node in selected if node.name not in holders and node.name not in taken.by)
        if not own and (elder := taken.everything_by or _elder(selected, taken)):
            outranked[placement.name] = elder
        else:
            overlaps += _overlaps(placement, selected, holders, taken)
        holders |= {node.name: placement for node in own}
        members[placement.name] = own
    return Membership(members, holders, tuple(overlaps), outranked)


def taken_by(elders: Sequence[Cluster], nodes: Mapping[str, TreeNode]) -> Taken:
    """What these Clusters select, the first of them first."""
    by: dict[str, str] = {}
    everything_by = ""
    for elder in elders:
        placed = placements(elder, {})
        by = {**dict.fromkeys(share_out(placed, nodes).holders, elder.name), **by}
        if not everything_by and any(_selects_all(each.model) for each in _sound(placed)):
            everything_by = elder.name
    return Taken(by, everything_by)


def _sound(placed: Iterable[Placement]) -> list[Placement]:
    return [each for each in placed if not each.fault and not each.rival]


def _selects_all(model: Model) -> bool:
    return model.mode is Mode.WHOLE or (model.mode is Mode.PARTY and model.selector.empty)


def _elder(selected: Iterable[TreeNode], taken: Taken) -> str:
    """The Cluster that has one of them; empty where none does."""
    return next((taken.by[node.name] for node in selected if node.name in taken.by), "")


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


def _overlaps(
    placement: Placement, selected: Sequence[TreeNode], holders: Mapping[str, Placement], taken: Taken
) -> list[Overlap]:
    if placement.model.mode is not Mode.PARTY or placement.model.selector.empty:
        return []
    lost: dict[str, list[str]] = {}
    for node in selected:
        if node.name in holders:
            lost.setdefault(holders[node.name].model.title, []).append(node.name)
        elif node.name in taken.by:
            lost.setdefault(f"Cluster {taken.by[node.name]}", []).append(node.name)
    return [Overlap(placement, by, tuple(nodes)) for by, nodes in lost.items()]
