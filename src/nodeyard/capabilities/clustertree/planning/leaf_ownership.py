"""Precedence of Clusters that mirror the same leaf.

Each Cluster records in an annotation which leaf it mirrors and since when, so that every replica knows it, whichever
leaves it is connected to. A Cluster that already mirrors the leaf precedes one that does not yet. If two started
concurrently, the one that was created first wins. A leaf node counts once (`membership`): what the models of the
earlier Cluster select belongs to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_millis


@dataclass(frozen=True)
class TakenNodes:
    """Leaf nodes that earlier Clusters have."""

    by: Mapping[str, str] = field(default_factory=dict)
    """The Cluster that has a leaf node, by the node's name."""
    everything_by: str = ""
    """The Cluster that has all leaf nodes, including future ones."""


NO_NODES_TAKEN = TakenNodes()


def leaf_of(cluster: Cluster) -> str:
    """Return the recorded uid of the Cluster's leaf; empty if none is recorded."""
    return _recorded(cluster)[0]


def is_other(cluster: Cluster, uid: str, *, is_known: bool) -> bool:
    """Return True if the leaf is not the recorded one. `is_known`: something has been received from it."""
    recorded = leaf_of(cluster)
    return bool(recorded) and uid != recorded and (bool(uid) or is_known)


def earlier_clusters(cluster: Cluster, sharing: Iterable[Cluster], leaf: str) -> tuple[Cluster, ...]:
    """Return the Clusters in `sharing` that precede this one, first one first."""
    has_begun = leaf_of(cluster) == leaf
    others = (each for each in sharing if each.name != cluster.name)
    return tuple(sorted((each for each in others if not has_begun or _rank(each) < _rank(cluster)), key=_rank))


def wanted_leaf_annotation(snapshot: TreeSnapshot, now: datetime) -> str:
    """Return the desired annotation. It stays unchanged while the leaf is not observed, and is empty for a leaf without
    a readable uid, which cannot be told from others."""
    cluster, leaf = snapshot.cluster, snapshot.leaf
    present = cluster.metadata.annotations.get(names.LEAF, "")
    if not (leaf.is_connected and leaf.is_synced) or leaf.uid == leaf_of(cluster):
        return present
    return f"{leaf.uid} {format_rfc3339_millis(_mirroring_since(snapshot) or now)}" if leaf.uid else ""


def _mirroring_since(snapshot: TreeSnapshot) -> datetime | None:
    """Return the creation time of the first node, for a Cluster whose nodes predate the annotation."""
    if snapshot.cluster.metadata.annotations.get(names.LEAF):
        return None
    made = (node.metadata.creation_timestamp for node in snapshot.mirrors.values())
    return min((moment for moment in made if moment is not None), default=None)


def _rank(cluster: Cluster) -> tuple[str, str, str]:
    """Sort by start of mirroring, then creation: an annotation copied from another Cluster ranks after the original."""
    created = cluster.metadata.creation_timestamp
    return _recorded(cluster)[1], "" if created is None else format_rfc3339(created), cluster.name


def _recorded(cluster: Cluster) -> tuple[str, str]:
    leaf, _, since = cluster.metadata.annotations.get(names.LEAF, "").partition(" ")
    return leaf, since
