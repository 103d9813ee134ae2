"""Nodes that are not wanted any more go, each with its lease: of a model that is gone, or of the whole Cluster.

Nothing of that needs the leaf. All of it belongs to one undertaking of the Cluster as it is specified now, so that one
approval is for all, and what another edit takes away is asked about anew. Nodes also go whose leaf node is gone. That
is no version of the Cluster's, and may be others tomorrow: an approval is for exactly those that it was asked about.
"""

from __future__ import annotations

from nodeyard.capabilities.clustertree.planning.ownership import is_going, node_ref
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.json import Object
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Disruption, ObjectRef, Verb, Write


def ending(cluster: Cluster) -> Reason | None:
    """Why the Cluster is to have no nodes at all."""
    if cluster.is_deleting:
        return Reason.DELETING
    if cluster.is_root:
        return Reason.IS_ROOT
    return None if cluster.tree.enable else Reason.DISABLED


def remove_node(
    draft: Draft, cluster: Cluster, node: TreeNode, why: Reason | None = None, after: tuple[str, ...] = ()
) -> None:
    """`why` is of the Cluster, or of the leaf; without it, no model asks for the node."""
    if is_going(node):
        return
    facts: Object = {"cluster": cluster.name, "node": node.name}
    gone = draft.act(
        Verb.DELETE,
        node_ref(node.name, node.metadata.uid),
        Reason.NODE_REMOVED,
        {**facts, "why": why.value} if why is not None else facts,
        Write(),
        disruption=Disruption.DELETES,
        after=after,
        part_of="" if why is Reason.LEAF_NODE_MISSING else _undertaking(cluster),
    )
    lease = ObjectRef(api_version="coordination.k8s.io/v1", kind="Lease", namespace=LEASE_NAMESPACE, name=node.name)
    draft.act(Verb.DELETE, lease, Reason.LEASE_REMOVED, facts, Write(), after=(gone,))


def _undertaking(cluster: Cluster) -> str:
    return f"remove/{cluster.metadata.uid}/{cluster.metadata.generation}"
