"""Removes nodes and their leases: of a removed model, or of the whole Cluster. This never needs the leaf.

All removals of one generation of the Cluster form one approval group: one approval covers them, and another edit needs
its own. Nodes whose leaf node is gone are removed too. That is no change of the Cluster and may concern other nodes
tomorrow, so each approval covers exactly the nodes that were held.
"""

from __future__ import annotations

from nodeyard.capabilities.clustertree.messages import LeaseRemoved, NodeRemoved
from nodeyard.capabilities.clustertree.planning.ownership import is_terminating, node_ref
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Disruption, ObjectRef, Verb, Write


def removal_reason(cluster: Cluster) -> Reason | None:
    """Return why the Cluster has no nodes at all; None if it may have some."""
    if cluster.is_deleting:
        return Reason.DELETING
    if cluster.is_root:
        return Reason.IS_ROOT
    return None if cluster.tree.enable else Reason.DISABLED


def remove_node(
    builder: PlanBuilder, cluster: Cluster, node: TreeNode, why: Reason | None = None, after: tuple[str, ...] = ()
) -> None:
    """Delete the node, then its lease. Without `why`, no model asks for the node."""
    if is_terminating(node):
        return
    gone = builder.act(
        Verb.DELETE,
        node_ref(node.name, node.metadata.uid),
        NodeRemoved(cluster=cluster.name, node=node.name, why=why or ""),
        Write(),
        disruption=Disruption.DELETES,
        after=after,
        approval_group="" if why is Reason.LEAF_NODE_MISSING else _approval_group(cluster),
    )
    lease = ObjectRef(api_version="coordination.k8s.io/v1", kind="Lease", namespace=LEASE_NAMESPACE, name=node.name)
    builder.act(Verb.DELETE, lease, LeaseRemoved(cluster=cluster.name, node=node.name), Write(), after=(gone,))


def _approval_group(cluster: Cluster) -> str:
    return f"remove/{cluster.metadata.uid}/{cluster.metadata.generation}"
