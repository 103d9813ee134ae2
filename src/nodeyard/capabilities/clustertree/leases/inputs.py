"""Input of the lease loop: what it needs to know of one Cluster, without anything that changes often. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.heartbeat import is_silent
from nodeyard.capabilities.clustertree.planning.models import Mode
from nodeyard.capabilities.clustertree.planning.ownership import is_adopted, is_terminating, mirrors_of
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.capabilities.clustertree.types import ClusterTreeOptions
from nodeyard.kube.conditions import UNKNOWN
from nodeyard.kube.goformat import parse_nanoseconds
from nodeyard.kube.timestamps import parse_rfc3339_or_none

CREDENTIAL_GRACE: Final = timedelta(minutes=10)
"""Default of `spec.clusterTreeOptions.credentialGrace`."""
REJECTED: Final = frozenset((Reason.CREDENTIALS_REJECTED, Reason.LEAF_CHANGED))
"""Reasons of a node's Ready condition: the leaf was given up although its server responds."""
GIVEN_UP: Final = REJECTED | {Reason.UNREACHABLE}


class NodeLeaseInput(NamedTuple):
    """A node of the root whose lease is renewed."""

    name: str
    uid: str
    is_alive: bool
    """False if the leaf itself reports the node as gone or silent; its lease is then left to expire."""
    is_adopted: bool = True
    """False if Kosmos created the node and Nodeyard has not adopted it; the loop first finds out who renews its lease.
    """


@dataclass(frozen=True)
class LeaseInput:
    cluster: str
    kubeconfig: bytes = field(default=b"", repr=False)
    nodes: tuple[NodeLeaseInput, ...] = ()
    """Sorted by name."""
    is_other: bool = False
    """The server is another cluster than the one that the nodes mirror; its responses count as rejections."""
    credential_grace: timedelta = CREDENTIAL_GRACE
    is_given_up: bool = False
    """The nodes say that the leaf is unreachable. After a restart or a takeover the loop starts from there, instead of
    granting three more rounds or another grace."""
    is_rejected: bool = False
    """The nodes say that the credentials were rejected."""
    rejected_since: datetime | None = None
    """Time of the first rejection, from the Cluster's annotation."""


def lease_input(snapshot: TreeSnapshot, nodes: Iterable[NodeLeaseInput | tuple[str, str, bool]]) -> LeaseInput | None:
    """Return None if there is nothing to renew or probe: the Cluster is not mirrored (any more)."""
    cluster = snapshot.cluster
    leased = tuple(sorted(NodeLeaseInput(*each) for each in nodes))
    if not leased and (cluster.is_deleting or cluster.is_root or not cluster.tree.enable):
        return None
    reasons = {_unreachable(node) for node in snapshot.mirrors.values()}
    return LeaseInput(
        cluster=cluster.name,
        kubeconfig=snapshot.kubeconfig.content,
        nodes=leased,
        is_other=snapshot.leaf.is_other and bool(snapshot.leaf.uid),
        credential_grace=credential_grace(cluster.tree),
        is_given_up=bool(reasons & GIVEN_UP),
        is_rejected=bool(reasons & REJECTED),
        rejected_since=parse_rfc3339_or_none(cluster.metadata.annotations.get(names.REJECTED_SINCE)),
    )


def credential_grace(options: ClusterTreeOptions) -> timedelta:
    """Return the Cluster's grace, or the default if the field is empty or not a duration."""
    nanoseconds = parse_nanoseconds(options.credential_grace)
    if nanoseconds is None or nanoseconds < 0:
        return CREDENTIAL_GRACE
    return timedelta(microseconds=nanoseconds // 1000)


def _unreachable(node: TreeNode) -> str:
    """Return the reason of Ready=Unknown; empty for any other node."""
    ready = node.condition("Ready")
    return ready.reason if ready is not None and ready.status == UNKNOWN else ""


def node_lease_inputs(snapshot: TreeSnapshot, now: datetime) -> tuple[NodeLeaseInput, ...]:
    """List the nodes with a lease, sorted by name.

    Every mirror has a lease, also in a paused Cluster and while its removal waits for approval. An expired lease evicts
    pods, and only a plan may decide that.
    """
    mirrors = mirrors_of(snapshot.mirrors, snapshot.cluster.name)
    return tuple(
        NodeLeaseInput(name, node.metadata.uid, _is_alive(snapshot, node, now), is_adopted(node))
        for name, node in sorted(mirrors.items())
        if not is_terminating(node)
    )


def _is_alive(snapshot: TreeSnapshot, mirror: TreeNode, now: datetime) -> bool:
    """Return False for the mirror of a silent leaf node, also if no model asks for it any more. A mirror of several
    lives while the leaf responds."""
    is_single = mirror.metadata.annotations.get(names.NODE_MODE) == Mode.NODE
    return not (is_single and is_silent(snapshot.leaf, mirror.name, mirror, now))
