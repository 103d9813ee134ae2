"""Detects whether Kosmos' clustertree manager is still running: another process renews the leases of our nodes.

A running process alone does not prove that it manages these nodes. The lease loop sees that a lease changed twice in a
row without its own write, and publishes that in `LeafHealth.moved`. For nodes that Kosmos created and Nodeyard has not
adopted, the first read of the lease decides; nothing is written before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.liveness import LeafHealth
from nodeyard.capabilities.clustertree.planning.ownership import is_adopted, is_mirror_of
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.capabilities.clustertree.watched import CLUSTER
from nodeyard.plan.message_format import listed
from nodeyard.runtime.capability import PeerOperator, View

ORIGINAL: Final = "Kosmos' clustertree manager"
_HAND_OVER: Final = (
    "It renews the leases of {nodes}. Scale Deployment clustertree-cluster-manager in namespace kosmos-system to 0; "
    "Nodeyard takes over once nobody renews the leases"
)
_NOT_LOOKED: Final = f"{ORIGINAL}, as far as is known,"
_LOOKING: Final = "It created {nodes}; Nodeyard is checking whether it still renews their leases"
_NAMED: Final = 3


def detect_peer_operator(view: View, now: datetime) -> PeerOperator | None:
    clusters: tuple[Cluster, ...] = tuple(view.all(CLUSTER))
    for cluster in clusters:
        health: LeafHealth | None = view.finding(names.leaf_health(cluster.name))
        if health is not None and health.moved:
            return PeerOperator(ORIGINAL, _HAND_OVER.format(nodes=listed(health.moved, _NAMED)))
        if health is None and (left := _unadopted_nodes(view, cluster.name)):
            return PeerOperator(_NOT_LOOKED, _LOOKING.format(nodes=listed(left, _NAMED)))
    return None


def _unadopted_nodes(view: View, cluster: str) -> tuple[str, ...]:
    """List Kosmos' nodes of a leaf that this replica owns. Other replicas' health is not published here."""
    if view.cluster(cluster).name != cluster:
        return ()
    nodes: Iterable[TreeNode] = view.indexed("Node", names.BY_CLUSTER, cluster)
    return tuple(node.name for node in nodes if is_mirror_of(node, cluster) and not is_adopted(node))
