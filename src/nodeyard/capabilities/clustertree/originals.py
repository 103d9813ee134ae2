"""Whether Kosmos' own clustertree manager is alive beside us: somebody renews the leases that we look after.

That its process runs would not tell whether it touches these nodes. The lease loop sees a node's lease move though it
did not write it, twice in a row, and says so in what it publishes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from nodeyard.capabilities.clustertree.leases.keeper import finding_name
from nodeyard.capabilities.clustertree.liveness import Finding
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.capabilities.clustertree.watched import CLUSTER
from nodeyard.runtime.capability import Living, View

ORIGINAL: Final = "Kosmos' clustertree manager"
_HAND_OVER: Final = (
    "It renews the leases of {nodes}. Scale the Deployment clustertree-cluster-manager in the namespace kosmos-system "
    "to 0; Nodeyard takes over when the leases stand still"
)
_NAMED: Final = 3


def living_original(view: View, now: datetime) -> Living | None:
    clusters: tuple[Cluster, ...] = tuple(view.all(CLUSTER))
    for cluster in clusters:
        finding: Finding | None = view.finding(finding_name(cluster.name))
        if finding is not None and finding.moved:
            return Living(ORIGINAL, _HAND_OVER.format(nodes=_listed(finding.moved)))
    return None


def _listed(nodes: tuple[str, ...]) -> str:
    more = len(nodes) - _NAMED
    return f"{', '.join(nodes[:_NAMED])}{f' and {more} more' if more > 0 else ''}"
