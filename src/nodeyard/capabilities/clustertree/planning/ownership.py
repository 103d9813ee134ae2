"""Whose a node of the root is, and how objects of this capability are referred to.

A node is a Cluster's when it says so twice: by the annotation that names the Cluster and by the label that every
mirrored node carries. One that merely has a name that we would give stays whose it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.kube.objects import OwnerReference
from nodeyard.plan.model import ObjectRef


def is_ours(node: TreeNode, cluster: str) -> bool:
    metadata = node.metadata
    return metadata.annotations.get(MIRRORED_CLUSTER) == cluster and metadata.labels.get(MIRRORED_NODE) == names.TRUE


def ours(mirrors: Mapping[str, TreeNode], cluster: str) -> dict[str, TreeNode]:
    """By name; those that only say so by half are left out."""
    return {name: node for name, node in mirrors.items() if is_ours(node, cluster)}


def is_adopted(node: TreeNode) -> bool:
    """We made it, or have taken it over from Kosmos."""
    return bool(node.metadata.annotations.get(names.MODEL))


def is_going(node: TreeNode) -> bool:
    """Somebody's finalizer still holds it, and nothing is to be done about it."""
    return node.metadata.deletion_timestamp is not None


def cluster_ref(cluster: Cluster) -> ObjectRef:
    return ObjectRef(api_version=names.API_VERSION, kind=names.KIND, name=cluster.name, uid=cluster.metadata.uid)


def node_ref(name: str, uid: str = "") -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Node", name=name, uid=uid)


def owned_by(cluster: Cluster, present: tuple[OwnerReference, ...]) -> tuple[OwnerReference, ...]:
    """The owners with the Cluster among them, as it is today.

    Garbage collection then takes the node should the Cluster go without us. A reference to a Cluster of this name that
    is no more would make it take the node now.
    """
    wanted = OwnerReference(api_version=names.API_VERSION, kind=names.KIND, name=cluster.name, uid=cluster.metadata.uid)
    if any(_is_to(each, wanted) and each.uid == wanted.uid for each in present):
        return present
    return (*(each for each in present if not _is_to(each, wanted)), wanted)


def _is_to(reference: OwnerReference, wanted: OwnerReference) -> bool:
    group = reference.api_version.partition("/")[0]
    return (group, reference.kind, reference.name) == (names.GROUP, wanted.kind, wanted.name)
