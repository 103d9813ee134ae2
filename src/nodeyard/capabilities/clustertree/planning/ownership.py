"""Ownership of the root's nodes, and references to objects of clustertree.

A node belongs to a Cluster if it has both the annotation with the Cluster's name and the label of mirrored nodes. A
matching name alone is not enough.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.kube.objects import OwnerReference
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
