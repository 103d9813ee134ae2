"""What the lease loop is told of a Cluster: all it needs, and nothing that merely comes and goes. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.capabilities.clustertree.types import ClusterTreeOptions
from nodeyard.kube.conditions import UNKNOWN
from nodeyard.kube.moments import read

CREDENTIAL_GRACE: Final = timedelta(minutes=10)
"""Where a Cluster does not say."""


class LeaseNode(NamedTuple):
    """A node of the root that has a lease."""

    name: str
    uid: str
    is_alive: bool
    """False where the leaf itself says that the node is not there: then its lease is left to run out."""
    is_adopted: bool = True
    """False where Kosmos made it and we have not taken it over: who renews its lease is to be found out first."""


@dataclass(frozen=True)
class Brief:
    cluster: str
    kubeconfig: bytes = field(default=b"", repr=False)
    nodes: tuple[LeaseNode, ...] = ()
    """By name."""
    credential_grace: timedelta = CREDENTIAL_GRACE
    is_given_up: bool = False
    """Its nodes say that it is unreachable: whoever takes over, after a restart or from another replica, starts there
    instead of granting it three more rounds, or a whole grace."""
    is_rejected: bool = False
    """They say that it is for the credentials."""
    rejected_since: datetime | None = None
    """Since when our credentials are rejected, as the Cluster says."""


def brief_of(snapshot: TreeSnapshot, nodes: Iterable[LeaseNode | tuple[str, str, bool]]) -> Brief | None:
    """None where there is nothing to renew and nobody to ask: the Cluster is not, or is no longer, to be mirrored."""
    cluster = snapshot.cluster
    leased = tuple(sorted(LeaseNode(*each) for each in nodes))
    if not leased and (cluster.is_deleting or cluster.is_root or not cluster.tree.enable):
        return None
    reasons = {_unreachable(node) for node in snapshot.mirrors.values()}
    return Brief(
        cluster=cluster.name,
        kubeconfig=snapshot.kubeconfig.content,
        nodes=leased,
        credential_grace=credential_grace(cluster.tree),
        is_given_up=bool(reasons & {Reason.UNREACHABLE, Reason.CREDENTIALS_REJECTED}),
        is_rejected=Reason.CREDENTIALS_REJECTED in reasons,
        rejected_since=read(cluster.metadata.annotations.get(names.REJECTED_SINCE)),
    )


def credential_grace(options: ClusterTreeOptions) -> timedelta:
    """What the Cluster asks for; the usual where it asks for nothing, or for what is no length of time."""
    # With CEL around it, which is more than all the rest of an operator: not where nobody mirrors clusters.
    from nodeyard.schema.cel.moments import parse_duration

    parsed = parse_duration(options.credential_grace)
    if parsed is None or parsed.nanoseconds < 0:
        return CREDENTIAL_GRACE
    return timedelta(microseconds=parsed.nanoseconds // 1000)


def _unreachable(node: TreeNode) -> str:
    """Why the node counts as unreachable, as it says itself; empty where it does not."""
    ready = node.condition("Ready")
    return ready.reason if ready is not None and ready.status == UNKNOWN else ""
