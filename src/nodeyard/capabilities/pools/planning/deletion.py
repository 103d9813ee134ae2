"""A LatticeCluster is deleted: its Cluster goes, then their namespace, then the finalizer that held it until then.

Nothing is drained: where the whole cluster goes there is nowhere to go to, and Cluster API does not try either. What
would tear down the cluster we run on is refused, and so is what cannot be told apart from that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.applying import ref_to
from nodeyard.capabilities.pools.planning.foundation import cluster_ref
from nodeyard.capabilities.pools.planning.leaving import node_names
from nodeyard.capabilities.pools.planning.observed import is_deleting, is_paused
from nodeyard.capabilities.pools.planning.pivot import is_initialized, is_pivoted
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot
from nodeyard.capabilities.pools.types import LatticeCluster, Pivot
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace
from nodeyard.plan.draft import NAMED, Draft
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write


def delete_cluster(draft: Draft, snapshot: PoolsSnapshot) -> Reason | None:
    """Take the deletion one step further; what it waits for, or None when nothing holds it any more."""
    lc, management = snapshot.cluster, snapshot.management
    if not lc.is_deleting or names.FINALIZER not in lc.metadata.finalizers:
        return None
    if is_paused(management.cluster):
        return _wait(draft, snapshot, Reason.CLUSTER_PAUSED)
    if lc.metadata.annotations.get(names.ORPHAN_ON_DELETE) == names.TRUE:
        _release(draft, snapshot, is_orphaned=True)
        return None
    if management.cluster is not None:
        return _refused(draft, snapshot, management.cluster) or _delete_cluster(draft, snapshot, management.cluster)
    if management.namespace is not None and _is_ours(management.namespace.metadata.labels, lc):
        return _delete_namespace(draft, snapshot, management.namespace)
    _release(draft, snapshot)
    return None


def _refused(draft: Draft, snapshot: PoolsSnapshot, cluster: Object) -> Reason | None:
    """Why the Cluster may not be deleted."""
    if is_deleting(cluster):
        return None
    if not _is_ours(meta.labels(cluster), snapshot.cluster):
        return _wait(draft, snapshot, Reason.FOREIGN, name=str(ref_to(cluster)))
    if is_pivoted(snapshot):
        return _wait(draft, snapshot, Reason.SELF_MANAGED)
    if _may_be_own(snapshot):
        return _wait(draft, snapshot, Reason.IDENTITY_UNKNOWN, error=snapshot.workload.error)
    return None


def _may_be_own(snapshot: PoolsSnapshot) -> bool:
    """Whether it runs, is meant to manage itself, and cannot be asked who it is: it could be the one we run on."""
    may_pivot = snapshot.cluster.spec.pivot != Pivot.NEVER
    return may_pivot and not snapshot.workload.uid and is_initialized(snapshot)


def _delete_cluster(draft: Draft, snapshot: PoolsSnapshot, cluster: Object) -> Reason:
    if not is_deleting(cluster):
        lc = snapshot.cluster
        nodes = node_names(snapshot.workload, _machines(snapshot))
        draft.act(
            Verb.DELETE,
            ref_to(cluster),
            Reason.CLUSTER_DELETED,
            {"cluster": lc.name, "nodes": len(nodes)},
            Write(propagation="Background"),
            disruption=Disruption.DELETES,
            disrupts=nodes,
            part_of=f"delete {lc.name} {lc.metadata.uid}",
        )
    return _wait(draft, snapshot, Reason.CLUSTER_GOING)


def _delete_namespace(draft: Draft, snapshot: PoolsSnapshot, namespace: Namespace) -> Reason | None:
    lc, metadata = snapshot.cluster, namespace.metadata
    if metadata.deletion_timestamp is None:
        if others := _of_others(snapshot):
            _release(draft, snapshot, kept=others[:NAMED])
            return None
        ref = ObjectRef(api_version="v1", kind="Namespace", name=metadata.name, uid=metadata.uid)
        nodes = node_names(snapshot.workload, _machines(snapshot))
        # The Cluster is gone, and this is what was let go with it.
        draft.act(
            Verb.DELETE,
            ref,
            Reason.NAMESPACE_DELETED,
            {"cluster": lc.name, "namespace": metadata.name},
            Write(propagation="Background"),
            disruption=Disruption.DELETES if nodes else Disruption.NONE,
            disrupts=nodes,
            is_granted=bool(nodes),
        )
    return _wait(draft, snapshot, Reason.NAMESPACE_GOING)


def _machines(snapshot: PoolsSnapshot) -> list[Machine]:
    """Of this cluster; another may have its own in the same namespace."""
    return [each for each in snapshot.management.machines if each.spec.cluster_name == snapshot.cluster.name]


def _of_others(snapshot: PoolsSnapshot) -> list[str]:
    """What would go with the namespace and is another cluster's."""
    management, name = snapshot.management, snapshot.cluster.name
    machines = [each.metadata.name for each in management.machines if each.spec.cluster_name != name]
    return [*management.other_clusters, *_deployments_of_others(snapshot), *machines]


def _deployments_of_others(snapshot: PoolsSnapshot) -> list[str]:
    name = snapshot.cluster.name
    deployments = snapshot.management.deployments.values()
    return [meta.name(each) for each in deployments if (each.get("spec") or {}).get("clusterName") != name]


def _release(draft: Draft, snapshot: PoolsSnapshot, *, is_orphaned: bool = False, kept: Sequence[str] = ()) -> None:
    """Let it go. The list is written as a whole, so only over the one that was read."""
    lc = snapshot.cluster
    left = [each for each in lc.metadata.finalizers if each != names.FINALIZER]
    facts: Object = {"cluster": lc.name, "namespace": names.namespace(lc.name), "orphaned": is_orphaned}
    if kept:
        facts["kept"] = list(kept)
    draft.act(
        Verb.PATCH,
        cluster_ref(snapshot),
        Reason.FINALIZER_REMOVED,
        facts,
        Write(body={"metadata": {"finalizers": left}}, resource_version=lc.metadata.resource_version),
        diff=(FieldChange(path=f"metadata.finalizers[{names.FINALIZER}]", from_=names.FINALIZER),),
        part="finalizer",
    )


def _wait(draft: Draft, snapshot: PoolsSnapshot, reason: Reason, **more: object) -> Reason:
    lc = snapshot.cluster
    facts = {
        "cluster": lc.name,
        "namespace": names.namespace(lc.name),
        "machines": len(_machines(snapshot)),
        "deployments": len(snapshot.management.deployments) - len(_deployments_of_others(snapshot)),
        **more,
    }
    draft.block(cluster_ref(snapshot), reason, facts)
    return reason


def _is_ours(labels: Mapping[str, str], lc: LatticeCluster) -> bool:
    return labels.get(names.CLUSTER) == lc.name
