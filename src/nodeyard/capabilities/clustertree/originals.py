"""Whether Kosmos' own clustertree manager is alive beside us: somebody renews the leases that we look after.

That its process runs would not tell whether it touches these nodes. The lease loop sees a node's lease move though it
did not write it, twice in a row, and says so in what it publishes. Of nodes that Kosmos made and that we have not taken
over the first look tells: before it, nothing is written either.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.liveness import Finding
from nodeyard.capabilities.clustertree.planning.ownership import is_adopted, is_ours
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.capabilities.clustertree.watched import CLUSTER
from nodeyard.plan.sentences import listed
from nodeyard.runtime.capability import Living, View

ORIGINAL: Final = "Kosmos' clustertree manager"
_HAND_OVER: Final = (
    "It renews the leases of {nodes}. Scale the Deployment clustertree-cluster-manager in the namespace kosmos-system "
    "to 0; Nodeyard takes over when the leases stand still"
)
_NOT_LOOKED: Final = f"{ORIGINAL}, as far as is known,"
_LOOKING: Final = "It made {nodes}; whether it still renews their leases is being looked at"
_NAMED: Final = 3


def living_original(view: View, now: datetime) -> Living | None:
    clusters: tuple[Cluster, ...] = tuple(view.all(CLUSTER))
    for cluster in clusters:
        finding: Finding | None = view.finding(names.finding(cluster.name))
        if finding is not None and finding.moved:
            return Living(ORIGINAL, _HAND_OVER.format(nodes=listed(finding.moved, _NAMED)))
        if finding is None and (left := _left_behind(view, cluster.name)):
            return Living(_NOT_LOOKED, _LOOKING.format(nodes=listed(left, _NAMED)))
    return None


def _left_behind(view: View, cluster: str) -> tuple[str, ...]:
    """Nodes of Kosmos' making, of a leaf that is ours to look after: of another replica's we never hear more."""
    if view.cluster(cluster).name != cluster:
        return ()
    nodes: Iterable[TreeNode] = view.indexed("Node", names.BY_CLUSTER, cluster)
    return tuple(node.name for node in nodes if is_ours(node, cluster) and not is_adopted(node))
