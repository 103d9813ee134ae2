"""Deletes a LatticeCluster: first its Cluster, then the namespace, then the finalizer.

Nothing is drained: pods of a deleted cluster have no other node, and Cluster API does not drain either. The deletion is
blocked if it would delete the cluster Nodeyard runs on, or if that cannot be ruled out.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.blocks import ClusterPaused, Foreign
from nodeyard.capabilities.pools.messages.removals import (
    ClusterDeleted,
    ClusterDeleting,
    FinalizerRemoved,
    IdentityUnknown,
    NamespaceDeleted,
    NamespaceDeleting,
    SelfManaged,
)
from nodeyard.capabilities.pools.planning.cluster_objects import cluster_ref
from nodeyard.capabilities.pools.planning.machine_state import is_initialized, is_paused, is_pivoted
from nodeyard.capabilities.pools.planning.removed_pool import node_names
from nodeyard.capabilities.pools.planning.server_side_apply import ref_to
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot
from nodeyard.capabilities.pools.types import LatticeCluster, Pivot
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace
from nodeyard.plan import finalizers
from nodeyard.plan.builder import NAMED, PlanBuilder
from nodeyard.plan.message import Message
from nodeyard.plan.model import Disruption, ObjectRef, Verb, Write


def delete_cluster(builder: PlanBuilder, snapshot: PoolsSnapshot) -> None:
    """Plan the next step of the deletion."""
    lc, management = snapshot.cluster, snapshot.management
    if not lc.is_deleting or names.FINALIZER not in lc.metadata.finalizers:
        return
    if is_paused(management.cluster):
        builder.block(cluster_ref(snapshot), ClusterPaused(cluster=lc.name))
    elif lc.metadata.annotations.get(names.ORPHAN_ON_DELETE) == names.TRUE:
        _remove_finalizer(builder, snapshot, FinalizerRemoved(cluster=lc.name, is_orphaned=True))
    elif management.cluster is not None:
        _delete_cluster(builder, snapshot, management.cluster)
    elif management.namespace is not None and _is_ours(management.namespace.metadata.labels, lc):
        _delete_namespace(builder, snapshot, management.namespace)
    else:
        _remove_finalizer(builder, snapshot, FinalizerRemoved(cluster=lc.name))


def _refusal(snapshot: PoolsSnapshot, cluster: Object) -> Message | None:
    """Return why the Cluster must not be deleted; None if it may be."""
    name = snapshot.cluster.name
    if not _is_ours(meta.labels(cluster), snapshot.cluster):
        return Foreign(name=str(ref_to(cluster)))
    if is_pivoted(snapshot):
        return SelfManaged(cluster=name)
    may_be_own = snapshot.cluster.spec.pivot != Pivot.NEVER and not snapshot.workload.uid
    if may_be_own and is_initialized(snapshot):
        return IdentityUnknown(cluster=name, error=snapshot.workload.error)
    return None


def _delete_cluster(builder: PlanBuilder, snapshot: PoolsSnapshot, cluster: Object) -> None:
    lc, ref, machines = snapshot.cluster, cluster_ref(snapshot), _machines(snapshot)
    if not meta.is_deleting(cluster):
        if (refusal := _refusal(snapshot, cluster)) is not None:
            builder.block(ref, refusal)
            return
        builder.act(
            Verb.DELETE,
            ref_to(cluster),
            ClusterDeleted(cluster=lc.name),
            Write(propagation="Background"),
            disruption=Disruption.DELETES,
            disrupts=node_names(snapshot.workload, machines),
            approval_group=f"delete {lc.name} {lc.metadata.uid}",
        )
    deployments = len(snapshot.management.deployments) - len(_foreign_deployments(snapshot))
    builder.block(ref, ClusterDeleting(cluster=lc.name, deployments=deployments, machines=len(machines)))


def _delete_namespace(builder: PlanBuilder, snapshot: PoolsSnapshot, namespace: Namespace) -> None:
    lc, metadata = snapshot.cluster, namespace.metadata
    if metadata.deletion_timestamp is None:
        if others := _foreign_objects(snapshot):
            _remove_finalizer(builder, snapshot, FinalizerRemoved(cluster=lc.name, kept=tuple(others[:NAMED])))
            return
        ref = ObjectRef(api_version="v1", kind="Namespace", name=metadata.name, uid=metadata.uid)
        nodes = node_names(snapshot.workload, _machines(snapshot))
        # The deletion of the Cluster was approved, and it covers these nodes.
        builder.act(
            Verb.DELETE,
            ref,
            NamespaceDeleted(cluster=lc.name),
            Write(propagation="Background"),
            disruption=Disruption.DELETES if nodes else Disruption.NONE,
            disrupts=nodes,
            already_approved=bool(nodes),
        )
    builder.block(cluster_ref(snapshot), NamespaceDeleting(cluster=lc.name, namespace=metadata.name))


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


def _remove_finalizer(builder: PlanBuilder, snapshot: PoolsSnapshot, message: FinalizerRemoved) -> None:
    finalizers.remove(builder, cluster_ref(snapshot), snapshot.cluster.metadata, names.FINALIZER, message)


def _is_ours(labels: Mapping[str, str], lc: LatticeCluster) -> bool:
    return labels.get(names.CLUSTER) == lc.name
