"""Ownership of the root's nodes, precedence of Clusters that mirror the same leaf, and references to objects.

A node belongs to a Cluster if it has both the annotation with the Cluster's name and the label of mirrored nodes. A
matching name alone is not enough.

Each Cluster records in an annotation which leaf it mirrors and since when, so that every replica knows it, whichever
leaves it is connected to. A Cluster that already mirrors the leaf precedes one that does not yet. If two started
concurrently, the one that was created first wins. A leaf node counts once (`tree`): what the models of the
earlier Cluster select belongs to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.kube.objects import OwnerReference
from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_millis
from nodeyard.plan.model import ObjectRef


def is_mirror_of(node: TreeNode, cluster: str) -> bool:
    metadata = node.metadata
    return metadata.annotations.get(MIRRORED_CLUSTER) == cluster and metadata.labels.get(MIRRORED_NODE) == names.TRUE


def mirrors_of(mirrors: Mapping[str, TreeNode], cluster: str) -> dict[str, TreeNode]:
    """Return the Cluster's nodes by name, without those that have the annotation and lack the label."""
    return {name: node for name, node in mirrors.items() if is_mirror_of(node, cluster)}


def is_adopted(node: TreeNode) -> bool:
    """Return True if Nodeyard created the node or adopted it from Kosmos."""
    return bool(node.metadata.annotations.get(names.MODEL))


def is_terminating(node: TreeNode) -> bool:
    """Return True if the node is being deleted; a finalizer of others may still hold it."""
    return node.metadata.deletion_timestamp is not None


def cluster_ref(cluster: Cluster) -> ObjectRef:
    return ObjectRef(api_version=names.API_VERSION, kind=names.KIND, name=cluster.name, uid=cluster.metadata.uid)


def node_ref(name: str, uid: str = "") -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Node", name=name, uid=uid)


def owned_by(cluster: Cluster, present: tuple[OwnerReference, ...]) -> tuple[OwnerReference, ...]:
    """Add a reference to the present Cluster to the owners.

    Garbage collection then removes the node if the Cluster is deleted without the operator. A reference to a deleted
    Cluster of the same name is dropped, because it would remove the node now.
    """
    wanted = OwnerReference(api_version=names.API_VERSION, kind=names.KIND, name=cluster.name, uid=cluster.metadata.uid)
    if any(_is_to(each, wanted) and each.uid == wanted.uid for each in present):
        return present
    return (*(each for each in present if not _is_to(each, wanted)), wanted)


def _is_to(reference: OwnerReference, wanted: OwnerReference) -> bool:
    group = reference.api_version.partition("/")[0]
    return (group, reference.kind, reference.name) == (names.GROUP, wanted.kind, wanted.name)


# Clusters of the same leaf


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
