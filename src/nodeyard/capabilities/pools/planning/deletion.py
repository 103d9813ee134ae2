"""Deletes a LatticeCluster: first its Cluster, then the namespace, then the finalizer.

Nothing is drained: pods of a deleted cluster have no other node, and Cluster API does not drain either. The deletion is
blocked if it would delete the cluster Nodeyard runs on, or if that cannot be ruled out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.cluster_objects import cluster_ref
from nodeyard.capabilities.pools.planning.machine_state import is_deleting, is_initialized, is_paused, is_pivoted
from nodeyard.capabilities.pools.planning.removed_pool import node_names
from nodeyard.capabilities.pools.planning.server_side_apply import ref_to
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot
from nodeyard.capabilities.pools.types import LatticeCluster, Pivot
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace
from nodeyard.plan.builder import NAMED, PlanBuilder
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write


def delete_cluster(builder: PlanBuilder, snapshot: PoolsSnapshot) -> Reason | None:
    """Plan the next step of the deletion; return what it waits for, or None if nothing blocks it."""
    lc, management = snapshot.cluster, snapshot.management
    if not lc.is_deleting or names.FINALIZER not in lc.metadata.finalizers:
        return None
    if is_paused(management.cluster):
        return _block(builder, snapshot, Reason.CLUSTER_PAUSED)
    if lc.metadata.annotations.get(names.ORPHAN_ON_DELETE) == names.TRUE:
        _remove_finalizer(builder, snapshot, is_orphaned=True)
        return None
    if management.cluster is not None:
        return _block_deletion(builder, snapshot, management.cluster) or _delete_cluster(
            builder, snapshot, management.cluster
        )
    if management.namespace is not None and _is_ours(management.namespace.metadata.labels, lc):
        return _delete_namespace(builder, snapshot, management.namespace)
    _remove_finalizer(builder, snapshot)
    return None


def _block_deletion(builder: PlanBuilder, snapshot: PoolsSnapshot, cluster: Object) -> Reason | None:
    """Block the deletion of the Cluster if it is not allowed; return the reason."""
    if is_deleting(cluster):
        return None
    if not _is_ours(meta.labels(cluster), snapshot.cluster):
        return _block(builder, snapshot, Reason.FOREIGN, name=str(ref_to(cluster)))
    if is_pivoted(snapshot):
        return _block(builder, snapshot, Reason.SELF_MANAGED)
    if _could_be_own_cluster(snapshot):
        return _block(builder, snapshot, Reason.IDENTITY_UNKNOWN, error=snapshot.workload.error)
    return None


def _could_be_own_cluster(snapshot: PoolsSnapshot) -> bool:
    """Return True if the cluster is initialized, pivots to itself, and its uid is unknown."""
    may_pivot = snapshot.cluster.spec.pivot != Pivot.NEVER
    return may_pivot and not snapshot.workload.uid and is_initialized(snapshot)


def _delete_cluster(builder: PlanBuilder, snapshot: PoolsSnapshot, cluster: Object) -> Reason:
    if not is_deleting(cluster):
        lc = snapshot.cluster
        nodes = node_names(snapshot.workload, _machines(snapshot))
        builder.act_with_facts(
            Verb.DELETE,
            ref_to(cluster),
            Reason.CLUSTER_DELETED,
            {"cluster": lc.name, "nodes": len(nodes)},
            Write(propagation="Background"),
            disruption=Disruption.DELETES,
            disrupts=nodes,
            approval_group=f"delete {lc.name} {lc.metadata.uid}",
        )
    return _block(builder, snapshot, Reason.CLUSTER_GOING)


def _delete_namespace(builder: PlanBuilder, snapshot: PoolsSnapshot, namespace: Namespace) -> Reason | None:
    lc, metadata = snapshot.cluster, namespace.metadata
    if metadata.deletion_timestamp is None:
        if others := _foreign_objects(snapshot):
            _remove_finalizer(builder, snapshot, kept=others[:NAMED])
            return None
        ref = ObjectRef(api_version="v1", kind="Namespace", name=metadata.name, uid=metadata.uid)
        nodes = node_names(snapshot.workload, _machines(snapshot))
        # The deletion of the Cluster was approved, and it covers these nodes.
        builder.act_with_facts(
            Verb.DELETE,
            ref,
            Reason.NAMESPACE_DELETED,
            {"cluster": lc.name, "namespace": metadata.name},
            Write(propagation="Background"),
            disruption=Disruption.DELETES if nodes else Disruption.NONE,
            disrupts=nodes,
            already_approved=bool(nodes),
        )
    return _block(builder, snapshot, Reason.NAMESPACE_GOING)


def _machines(snapshot: PoolsSnapshot) -> list[Machine]:
    """Return the Machines of this cluster; the namespace may contain Machines of another."""
    return [each for each in snapshot.management.machines if each.spec.cluster_name == snapshot.cluster.name]


def _foreign_objects(snapshot: PoolsSnapshot) -> list[str]:
    """Return the objects of other clusters that the namespace contains."""
    management, name = snapshot.management, snapshot.cluster.name
    machines = [each.metadata.name for each in management.machines if each.spec.cluster_name != name]
    return [*management.other_clusters, *_foreign_deployments(snapshot), *machines]


def _foreign_deployments(snapshot: PoolsSnapshot) -> list[str]:
    name = snapshot.cluster.name
    deployments = snapshot.management.deployments.values()
    return [meta.name(each) for each in deployments if (each.get("spec") or {}).get("clusterName") != name]


def _remove_finalizer(
    builder: PlanBuilder, snapshot: PoolsSnapshot, *, is_orphaned: bool = False, kept: Sequence[str] = ()
) -> None:
    """Remove the finalizer. The list is written as a whole, so the patch uses optimistic locking."""
    lc = snapshot.cluster
    left = [each for each in lc.metadata.finalizers if each != names.FINALIZER]
    facts: Object = {"cluster": lc.name, "namespace": names.namespace(lc.name), "orphaned": is_orphaned}
    if kept:
        facts["kept"] = list(kept)
    builder.act_with_facts(
        Verb.PATCH,
        cluster_ref(snapshot),
        Reason.FINALIZER_REMOVED,
        facts,
        Write(body={"metadata": {"finalizers": left}}, resource_version=lc.metadata.resource_version),
        diff=(FieldChange(path=f"metadata.finalizers[{names.FINALIZER}]", from_=names.FINALIZER),),
        part="finalizer",
    )


def _block(builder: PlanBuilder, snapshot: PoolsSnapshot, reason: Reason, **more: object) -> Reason:
    lc = snapshot.cluster
    facts = {
        "cluster": lc.name,
        "namespace": names.namespace(lc.name),
        "machines": len(_machines(snapshot)),
        "deployments": len(snapshot.management.deployments) - len(_foreign_deployments(snapshot)),
        **more,
    }
    builder.block_with_facts(cluster_ref(snapshot), reason, facts)
    return reason


def _is_ours(labels: Mapping[str, str], lc: LatticeCluster) -> bool:
    return labels.get(names.CLUSTER) == lc.name
