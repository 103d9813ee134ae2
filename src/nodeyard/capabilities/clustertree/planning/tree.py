"""The models of a Cluster, resolved: the node of each, and its leaf nodes.

A leaf node is assigned to one model and counts once, across all models and Clusters. Models that name a node come
first, then parties in list order, then the whole cluster gets the rest. A party that selects a node of another model is
reported, because its mirror is smaller than its selector suggests; an empty selector means the rest. Earlier Clusters
come before all of these, and a model that they leave no node to creates no mirror.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nodeyard.capabilities.clustertree.planning.models import Mode, Model, Placement, placements
from nodeyard.capabilities.clustertree.planning.ownership import NO_NODES_TAKEN, TakenNodes, is_adopted, mirrors_of
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.capabilities.clustertree.types import Cluster

_TURNS = (Mode.NODE, Mode.PARTY, Mode.WHOLE)


@dataclass(frozen=True)
class Overlap:
    """Leaf nodes that a model selects and another model or Cluster has."""

    placement: Placement
    by: str
    """The other model or Cluster, as messages name it."""
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Membership:
    members: Mapping[str, tuple[TreeNode, ...]] = field(default_factory=dict)
    """By the root's node that mirrors them; contains every model that gets a node."""
    holders: Mapping[str, Placement] = field(default_factory=dict)
    """The model that has a leaf node, by the node's name."""
    overlaps: tuple[Overlap, ...] = ()
    outranked: Mapping[str, str] = field(default_factory=dict)
    """The Cluster that leaves a model no leaf nodes, by the name of the model's node."""

    def of(self, placement: Placement) -> tuple[TreeNode, ...]:
        return self.members.get(placement.name, ())


def assign(
    placed: Sequence[Placement], nodes: Mapping[str, TreeNode], taken: TakenNodes = NO_NODES_TAKEN
) -> Membership:
    holders: dict[str, Placement] = {}
    members: dict[str, tuple[TreeNode, ...]] = {}
    overlaps: list[Overlap] = []
    outranked: dict[str, str] = {}
    for placement in sorted(_sound(placed), key=lambda each: (_TURNS.index(each.model.mode), each.model.position)):
        selected = _selected(placement, nodes)
        own = tuple(node for node in selected if node.name not in holders and node.name not in taken.by)
        if not own and (earlier := taken.everything_by or _earlier_owner(selected, taken)):
            outranked[placement.name] = earlier
        else:
            overlaps += _overlaps(placement, selected, holders, taken)
        holders |= {node.name: placement for node in own}
        members[placement.name] = own
    return Membership(members, holders, tuple(overlaps), outranked)


def taken_nodes(earlier_clusters: Sequence[Cluster], nodes: Mapping[str, TreeNode]) -> TakenNodes:
    """Return what these Clusters select; the first one has precedence."""
    by: dict[str, str] = {}
    everything_by = ""
    for earlier in earlier_clusters:
        placed = placements(earlier, {})
        by = {**dict.fromkeys(assign(placed, nodes).holders, earlier.name), **by}
        if not everything_by and any(_selects_all(each.model) for each in _sound(placed)):
            everything_by = earlier.name
    return TakenNodes(by, everything_by)


def _sound(placed: Iterable[Placement]) -> list[Placement]:
    return [each for each in placed if not each.fault and not each.rival]


def _selects_all(model: Model) -> bool:
    return model.mode is Mode.WHOLE or (model.mode is Mode.PARTY and model.selector.empty)


def _earlier_owner(selected: Iterable[TreeNode], taken: TakenNodes) -> str:
    """Return the Cluster that has one of the nodes; empty if none does."""
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
    placement: Placement, selected: Sequence[TreeNode], holders: Mapping[str, Placement], taken: TakenNodes
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
        """The reason why a model gets no node, or its node is not updated; by position of the model."""
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
