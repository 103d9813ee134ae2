"""Applies the objects that a cluster has once: namespace, Cluster, infrastructure cluster and control plane."""

from __future__ import annotations

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.changes import (
    ClusterAnnotated,
    ClusterApplied,
    ControlPlaneApplied,
    ControlPlaneScaled,
    FinalizerAdded,
    InfrastructureApplied,
    NamespaceCreated,
)
from nodeyard.capabilities.pools.planning import generation, templates
from nodeyard.capabilities.pools.planning.machine_state import control_plane_infrastructure, is_initialized, replicas
from nodeyard.capabilities.pools.planning.rollout import replacement, replacement_group
from nodeyard.capabilities.pools.planning.server_side_apply import apply, change_group, changes
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.kube import meta
from nodeyard.plan import finalizers
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write


def cluster_ref(snapshot: PoolsSnapshot) -> ObjectRef:
    metadata = snapshot.cluster.metadata
    return ObjectRef(api_version=names.API_VERSION, kind=names.CLUSTER_KIND, name=metadata.name, uid=metadata.uid)


def add_finalizer(builder: PlanBuilder, snapshot: PoolsSnapshot) -> str:
    """Add the finalizer before any object is created; return the action's id, empty if it is present."""
    metadata = snapshot.cluster.metadata
    message = FinalizerAdded(cluster=metadata.name)
    return finalizers.add(builder, cluster_ref(snapshot), metadata, names.FINALIZER, message)


def is_cluster_gone(snapshot: PoolsSnapshot) -> bool:
    """Return True if the Cluster was initialized once and no longer exists here.

    `clusterctl move` moves it to another management cluster, and this LatticeCluster does not follow. Recreated here,
    it would be a second control plane with the same name.
    """
    is_recorded = names.CLUSTER_UID in snapshot.cluster.metadata.annotations
    return is_recorded and snapshot.management.cluster is None and bool(snapshot.served.of("Cluster"))


def record_cluster_uid(builder: PlanBuilder, snapshot: PoolsSnapshot, prerequisites: tuple[str, ...]) -> None:
    """Record the uid of the initialized Cluster in an annotation of the LatticeCluster."""
    metadata, cluster = snapshot.cluster.metadata, snapshot.management.cluster
    if cluster is None or not is_initialized(snapshot):
        return
    uid = meta.uid(cluster)
    if metadata.annotations.get(names.CLUSTER_UID) == uid:
        return
    builder.act(
        Verb.PATCH,
        cluster_ref(snapshot),
        ClusterAnnotated(cluster=metadata.name),
        Write(body={"metadata": {"annotations": {names.CLUSTER_UID: uid}}}),
        diff=(FieldChange(path=f"metadata.annotations[{names.CLUSTER_UID}]", to=uid),),
        part="note",
        after=prerequisites,
    )


def apply_cluster_objects(builder: PlanBuilder, snapshot: PoolsSnapshot, version: str) -> tuple[str, ...]:
    """Apply the objects; return the ids of the actions that all others depend on.

    Raises NotServed and InvalidSpec before any action is added.
    """
    lc, management, served = snapshot.cluster, snapshot.management, snapshot.served
    infrastructure, cluster = generation.infrastructure_cluster(lc, served), generation.cluster(lc, served)
    template = generation.control_plane_template(lc, served)
    prerequisites = _apply_prerequisites(builder, snapshot)
    applied = InfrastructureApplied(cluster=lc.name)
    apply(builder, management.infrastructure, infrastructure, applied, after=prerequisites)
    _control_plane(builder, snapshot, template, version, prerequisites)
    apply(builder, management.cluster, cluster, ClusterApplied(cluster=lc.name), after=prerequisites)
    return prerequisites


def _apply_prerequisites(builder: PlanBuilder, snapshot: PoolsSnapshot) -> tuple[str, ...]:
    lc = snapshot.cluster
    first = tuple(filter(None, [add_finalizer(builder, snapshot)]))
    if snapshot.management.namespace is not None:
        return first
    made = apply(builder, None, generation.namespace(lc), NamespaceCreated(cluster=lc.name), after=first)
    return (*first, made)


def _control_plane(
    builder: PlanBuilder,
    snapshot: PoolsSnapshot,
    template: generation.Template,
    version: str,
    prerequisites: tuple[str, ...],
) -> None:
    """Apply the control plane.

    Scaling it down always needs an approval: few nodes are lost, but with them the failures that etcd survives.
    """
    lc, live = snapshot.cluster, snapshot.management.control_plane
    current = ("", "") if live is None else control_plane_infrastructure(live)
    chosen = templates.choose(builder, lc, snapshot.management, template, current, prerequisites)
    body = generation.control_plane(lc, chosen.name, chosen.kind, version)
    nodes = tuple(
        machine.node or machine.metadata.name
        for machine in snapshot.management.machines
        if names.CONTROL_PLANE_LABEL in machine.metadata.labels
    )
    changed = changes(live, body)
    number, wanted = (0 if live is None else replicas(live)), replicas(body)
    disruption, disrupts, why = replacement(() if live is None else changed, nodes)
    group = replacement_group(snapshot, "control plane", why)
    if wanted < number and not why:
        disruption, disrupts = Disruption.DELETES, nodes[: number - wanted]
        group = change_group(lc, f"control plane: {number} to {wanted}")
    change = ControlPlaneScaled if live is not None and wanted != number else ControlPlaneApplied
    replaced = len(disrupts) if why else 0
    apply(
        builder,
        live,
        body,
        change(cluster=lc.name, version=version, from_=number, to=wanted, nodes=replaced, why=why),
        disruption=disruption,
        disrupts=disrupts,
        after=(*prerequisites, chosen.action),
        changed=changed,
        group=group,
        always_asks=wanted < number,
    )
