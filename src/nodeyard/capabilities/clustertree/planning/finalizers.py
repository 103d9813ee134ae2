"""The finalizer stands before the first node does, and goes when the last one is gone."""

from __future__ import annotations

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import FieldChange, Verb, Write


def add(draft: Draft, cluster: Cluster) -> tuple[str, ...]:
    """What the Cluster's nodes have to come after."""
    present = cluster.metadata.finalizers
    if names.FINALIZER in present:
        return ()
    change = FieldChange(path=f"metadata.finalizers[{names.FINALIZER}]", to=names.FINALIZER)
    return (_write(draft, cluster, [*present, names.FINALIZER], Reason.FINALIZER_ADDED, change),)


def remove(draft: Draft, cluster: Cluster) -> None:
    present = cluster.metadata.finalizers
    if names.FINALIZER in present:
        change = FieldChange(path=f"metadata.finalizers[{names.FINALIZER}]", from_=names.FINALIZER)
        left = [each for each in present if each != names.FINALIZER]
        _write(draft, cluster, left, Reason.FINALIZER_REMOVED, change)


def _write(draft: Draft, cluster: Cluster, finalizers: list[str], reason: Reason, change: FieldChange) -> str:
    """The list is written as a whole, so only over the one that was read."""
    return draft.act(
        Verb.PATCH,
        cluster_ref(cluster),
        reason,
        {"cluster": cluster.name},
        Write(body={"metadata": {"finalizers": finalizers}}, resource_version=cluster.metadata.resource_version),
        diff=(change,),
        part="finalizer",
    )
