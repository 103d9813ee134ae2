"""What is written on the Cluster itself: the finalizer, which stands before the first node does, and notes that have to
outlive a restart. All go when the last node is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.claims import wanted_note
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.json import Object
from nodeyard.kube.moments import written
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import FieldChange, Verb, Write


def add(draft: Draft, snapshot: TreeSnapshot) -> tuple[str, ...]:
    """What the Cluster's nodes have to come after: notes alone hold nothing up."""
    cluster = snapshot.cluster
    notes = _notes(snapshot, draft.now)
    if names.FINALIZER in cluster.metadata.finalizers:
        _write(draft, cluster, Reason.CLUSTER_NOTED, notes)
        return ()
    return _write(draft, cluster, Reason.FINALIZER_ADDED, notes, [*cluster.metadata.finalizers, names.FINALIZER])


def remove(draft: Draft, cluster: Cluster) -> None:
    present = cluster.metadata.finalizers
    notes = {names.LEAF: "", names.REJECTED_SINCE: ""}
    left = [each for each in present if each != names.FINALIZER] if names.FINALIZER in present else None
    _write(draft, cluster, Reason.FINALIZER_REMOVED, notes, left)


def _notes(snapshot: TreeSnapshot, now: datetime) -> dict[str, str]:
    finding = snapshot.leaf.finding
    since = snapshot.cluster.metadata.annotations.get(names.REJECTED_SINCE, "")
    if finding is not None:
        since = "" if finding.rejected_since is None else written(finding.rejected_since)
    return {names.LEAF: wanted_note(snapshot, now), names.REJECTED_SINCE: since}


def _write(
    draft: Draft, cluster: Cluster, reason: Reason, notes: Mapping[str, str], finalizers: list[str] | None = None
) -> tuple[str, ...]:
    """Where something differs. The list is written as a whole, so only over the one that was read."""
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
    id = draft.act(
        Verb.PATCH,
        cluster_ref(cluster),
        reason,
        {"cluster": cluster.name, "what": sorted(changed)},
        Write(
            body={"metadata": metadata},
            resource_version=present.resource_version if finalizers is not None else "",
        ),
        diff=tuple(diff),
        part="finalizer",
    )
    return (id,)
