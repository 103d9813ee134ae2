"""Writes the Cluster's metadata: the finalizer, which precedes the first node, and annotations that must survive a
restart.

All are removed with the last node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.messages import (
    ClusterAnnotated,
    FinalizerAdded,
    FinalizerRemoved,
    LeafReplaced,
    TreeMessage,
)
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref, leaf_of, wanted_leaf_annotation
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_millis
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Disruption, FieldChange, Verb, Write


def add(builder: PlanBuilder, snapshot: TreeSnapshot) -> tuple[str, ...]:
    """Add the finalizer and annotations. Return the ids that nodes must wait for; annotations delay nothing."""
    cluster = snapshot.cluster
    notes = _notes(snapshot, builder.now)
    if names.FINALIZER in cluster.metadata.finalizers:
        _write(builder, cluster, ClusterAnnotated, notes)
        return ()
    return _write(builder, cluster, FinalizerAdded, notes, [*cluster.metadata.finalizers, names.FINALIZER])


def replace_leaf(builder: PlanBuilder, snapshot: TreeSnapshot, nodes: Iterable[str]) -> None:
    """Record another cluster as the leaf. This always needs an approval, because the nodes follow the new leaf."""
    cluster, found = snapshot.cluster, snapshot.leaf.uid
    present = cluster.metadata.annotations.get(names.LEAF, "")
    note = f"{found} {format_rfc3339_millis(builder.now)}" if found else None
    builder.act(
        Verb.PATCH,
        cluster_ref(cluster),
        LeafReplaced(cluster=cluster.name, recorded=leaf_of(cluster), found=found),
        Write(
            body={"metadata": {"annotations": {names.LEAF: note}}}, resource_version=cluster.metadata.resource_version
        ),
        diff=(FieldChange(path=f"metadata.annotations[{names.LEAF}]", from_=present, to=note),),
        disruption=Disruption.DELETES,
        disrupts=tuple(nodes),
        part="leaf",
        approval_group=f"leaf/{cluster.metadata.uid}/{cluster.metadata.generation}/{found}",
        always_asks=True,
    )


def remove(builder: PlanBuilder, cluster: Cluster) -> None:
    present = cluster.metadata.finalizers
    notes = {names.LEAF: "", names.REJECTED_SINCE: ""}
    left = [each for each in present if each != names.FINALIZER] if names.FINALIZER in present else None
    _write(builder, cluster, FinalizerRemoved, notes, left)


def _notes(snapshot: TreeSnapshot, now: datetime) -> dict[str, str]:
    health = snapshot.leaf.health
    since = snapshot.cluster.metadata.annotations.get(names.REJECTED_SINCE, "")
    if health is not None:
        since = "" if health.rejected_since is None else format_rfc3339(health.rejected_since)
    return {names.LEAF: wanted_leaf_annotation(snapshot, now), names.REJECTED_SINCE: since}


def _write(
    builder: PlanBuilder,
    cluster: Cluster,
    kind: type[ClusterAnnotated | FinalizerAdded | FinalizerRemoved],
    notes: Mapping[str, str],
    finalizers: list[str] | None = None,
) -> tuple[str, ...]:
    """Patch what differs. The finalizer list is replaced as a whole, so that patch carries the resourceVersion."""
    present = cluster.metadata
    changed = {key: text for key, text in notes.items() if present.annotations.get(key, "") != text}
    diff = [
        FieldChange(path=f"metadata.annotations[{key}]", from_=present.annotations.get(key), to=text or None)
        for key, text in changed.items()
    ]
    metadata: Object = {"annotations": {key: text or None for key, text in changed.items()}} if changed else {}
    if finalizers is not None:
        metadata["finalizers"] = finalizers
        had, has = names.FINALIZER in present.finalizers, names.FINALIZER in finalizers
        path = f"metadata.finalizers[{names.FINALIZER}]"
        diff.insert(
            0, FieldChange(path=path, from_=names.FINALIZER if had else None, to=names.FINALIZER if has else None)
        )
    if not metadata:
        return ()
    if kind is ClusterAnnotated:
        message: TreeMessage = ClusterAnnotated(cluster=cluster.name, what=tuple(sorted(changed)))
    else:
        message = kind(cluster=cluster.name)
    id = builder.act(
        Verb.PATCH,
        cluster_ref(cluster),
        message,
        Write(
            body={"metadata": metadata},
            resource_version=present.resource_version if finalizers is not None else "",
        ),
        diff=tuple(diff),
        part="finalizer",
    )
    return (id,)
