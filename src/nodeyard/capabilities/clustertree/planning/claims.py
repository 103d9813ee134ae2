"""Several Clusters may lead to one leaf. Each notes on itself which leaf it mirrors and since when, so that every
replica sees it, whichever leaves that one is connected to.

Who mirrors a leaf already comes before who would like to; of two that began at once, unseen by each other, the one that
was made first does. What the elder's models select is the elder's: a leaf node counts once (`membership`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.moments import written, written_exactly


@dataclass(frozen=True)
class Taken:
    """What other Clusters have of the leaf."""

    by: Mapping[str, str] = field(default_factory=dict)
    """Which Cluster has a leaf node, by its name."""
    everything_by: str = ""
    """The Cluster that has whatever there is, also what is still to come."""


NOTHING_TAKEN = Taken()


def leaf_of(cluster: Cluster) -> str:
    """The uid of the leaf that it mirrors, as it says; empty where it says nothing."""
    return _noted(cluster)[0]


def elders(cluster: Cluster, sharing: Iterable[Cluster], leaf: str) -> tuple[Cluster, ...]:
    """Of those that mirror this leaf the ones that come before the Cluster, the first first."""
    has_begun = leaf_of(cluster) == leaf
    others = (each for each in sharing if each.name != cluster.name)
    return tuple(sorted((each for each in others if not has_begun or _rank(each) < _rank(cluster)), key=_rank))


def wanted_note(snapshot: TreeSnapshot, now: datetime) -> str:
    """What the Cluster should say. While the leaf is not seen that is what it says; one that does not tell who it is
    cannot be told from others, and nothing is said of it."""
    cluster, leaf = snapshot.cluster, snapshot.leaf
    present = cluster.metadata.annotations.get(names.LEAF, "")
    if not (leaf.is_connected and leaf.is_synced) or leaf.uid == leaf_of(cluster):
        return present
    return f"{leaf.uid} {written_exactly(_began(snapshot) or now)}" if leaf.uid else ""


def _began(snapshot: TreeSnapshot) -> datetime | None:
    """When its first node was made, of a Cluster whose nodes are older than such notes."""
    if snapshot.cluster.metadata.annotations.get(names.LEAF):
        return None
    made = (node.metadata.creation_timestamp for node in snapshot.mirrors.values())
    return min((moment for moment in made if moment is not None), default=None)


def _rank(cluster: Cluster) -> tuple[str, str, str]:
    """A note that was copied with the rest of another Cluster comes after that one."""
    created = cluster.metadata.creation_timestamp
    return _noted(cluster)[1], "" if created is None else written(created), cluster.name


def _noted(cluster: Cluster) -> tuple[str, str]:
    leaf, _, since = cluster.metadata.annotations.get(names.LEAF, "").partition(" ")
    return leaf, since
