"""Plans one LatticeCluster. Each step is a module of `planning`:

1. Delete the cluster if it has a deletionTimestamp; do nothing if it is paused.
2. Apply the cluster objects: namespace, Cluster, infrastructure cluster, control plane.
3. Reconcile each pool with the spec, at the version that the upgrade order allows.
4. Remove pools that are no longer in the spec, by poolDeletionPolicy.
5. Delete templates that nothing references.
6. Explain the objects that `why` asks about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.base import PoolMessage
from nodeyard.capabilities.pools.messages.blocks import (
    ClusterGone,
    ClusterPaused,
    ControlPlanePending,
    Invalid,
    NotPivoted,
    ProviderNotServed,
    WorkersUnclaimed,
)
from nodeyard.capabilities.pools.messages.removals import AllPoolsRemoved, ClusterDeleting, NamespaceDeleting
from nodeyard.capabilities.pools.planning import generation, pools, templates
from nodeyard.capabilities.pools.planning.cluster_objects import (
    apply_cluster_objects,
    cluster_ref,
    is_cluster_gone,
    record_cluster_uid,
)
from nodeyard.capabilities.pools.planning.decisions import decide
from nodeyard.capabilities.pools.planning.deletion import delete_cluster
from nodeyard.capabilities.pools.planning.machine_state import (
    control_plane_infrastructure,
    find_deployment,
    is_paused,
    may_scale,
    removed,
    replicas,
    unclaimed,
)
from nodeyard.capabilities.pools.planning.pools import Pool
from nodeyard.capabilities.pools.planning.removals import remove_pool
from nodeyard.capabilities.pools.planning.server_side_apply import changes_prefix, ref_to, upgrade_group
from nodeyard.capabilities.pools.planning.versions import PoolState, Versions, sequence
from nodeyard.capabilities.pools.reasons import WAITS
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import LatticeCluster, Pivot, resolved_pools
from nodeyard.capabilities.pools.validation.clusters import cluster_fault
from nodeyard.kube import meta
from nodeyard.plan.brake import disrupted_nodes
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.message import Message
from nodeyard.plan.model import ObjectRef, Planned, Verb, Write


def plan(snapshot: PoolsSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    builder = PoolsPlanBuilder(now, snapshot.cluster)
    snapshot = keep_provider_family(snapshot)
    wanted = resolve(snapshot)
    versions = sequence(snapshot, _pool_states(snapshot, wanted))
    _plan(builder, snapshot, wanted, versions)
    builder.count_changes(cluster_ref(snapshot), changes_prefix(snapshot.cluster))
    if versions.stop is not None:
        builder.open_groups.add(upgrade_group(snapshot.cluster).name)
    decisions = [decide(ref, snapshot, wanted, builder) for ref in explain]
    found = [decision for decision in decisions if decision is not None]
    return builder.planned(names.CAPABILITY, names.cluster_key(snapshot.cluster.name), found)


class PoolsPlanBuilder(PlanBuilder):
    """Builds a plan whose messages show the displayName of their pool."""

    def __init__(self, now: datetime, cluster: LatticeCluster) -> None:
        super().__init__(now, WAITS)
        self._names = {id: pool.display_name for id, pool in resolved_pools(cluster.spec.nodes).items()}

    def act(self, verb: Verb, ref: ObjectRef, message: Message, write: Write, **more: Any) -> str:
        return super().act(verb, ref, self._labelled(message), write, **more)

    def block(self, ref: ObjectRef, message: Message) -> None:
        super().block(ref, self._labelled(message))

    def count_changes(self, root: ObjectRef, prefix: str) -> None:
        """Count the nodes of all changes of one generation in each of them: together they may exceed the limit."""
        changes = [number for number, each in enumerate(self.actions) if each.approval_group.startswith(prefix)]
        if len(changes) < 2:
            return
        nodes = len(disrupted_nodes(self.actions[number] for number in changes))
        for number in changes:
            self.actions[number] = msgspec.structs.replace(self.actions[number], group_nodes=nodes, group_root=root)

    def _labelled(self, message: Message) -> Message:
        if isinstance(message, PoolMessage) and (name := self._names.get(message.pool)):
            return msgspec.structs.replace(message, display_name=name)
        return message


def keep_provider_family(snapshot: PoolsSnapshot) -> PoolsSnapshot:
    """Restrict the served kinds to the family of the live infrastructure cluster, even if newer kinds are served."""
    infrastructure = snapshot.management.infrastructure
    if infrastructure is None:
        return snapshot
    return replace(snapshot, served=generation.keep_family(snapshot.served, infrastructure["kind"]))


def resolve(snapshot: PoolsSnapshot) -> list[Pool]:
    """Resolve the pools of the spec, sorted by id."""
    lc = snapshot.cluster
    return [
        pools.resolve(snapshot, id, spec, find_deployment(lc.name, snapshot.management, id))
        for id, spec in resolved_pools(lc.spec.nodes).items()
    ]


def _pool_states(snapshot: PoolsSnapshot, wanted: Sequence[Pool]) -> list[PoolState]:
    return [
        PoolState(
            pool.id,
            pool.deployment,
            snapshot.management.machines_of(pool.lookup.name),
            pool.refusal is not None,
        )
        for pool in wanted
    ]


def _plan(builder: PlanBuilder, snapshot: PoolsSnapshot, wanted: Sequence[Pool], versions: Versions) -> None:
    lc, management, ref = snapshot.cluster, snapshot.management, cluster_ref(snapshot)
    if is_paused(management.cluster):
        builder.block(ref, ClusterPaused(cluster=lc.name))
    elif lc.is_deleting:
        delete_cluster(builder, snapshot)
    elif fault := cluster_fault(lc):
        builder.block(ref, Invalid(error=fault))
    elif management.namespace is not None and management.namespace.metadata.deletion_timestamp is not None:
        builder.block(ref, NamespaceDeleting(cluster=lc.name, namespace=names.namespace(lc.name)))
    elif management.cluster is not None and meta.is_deleting(management.cluster):
        builder.block(ref, ClusterDeleting(cluster=lc.name))
    elif is_cluster_gone(snapshot):
        builder.block(ref, ClusterGone(cluster=lc.name))
    else:
        _reconcile(builder, snapshot, wanted, versions)


def _reconcile(builder: PlanBuilder, snapshot: PoolsSnapshot, wanted: Sequence[Pool], versions: Versions) -> None:
    lc, management, ref = snapshot.cluster, snapshot.management, cluster_ref(snapshot)
    try:
        prerequisites = apply_cluster_objects(builder, snapshot, versions.control_plane)
    except generation.NotServed as missing:
        builder.block(ref, ProviderNotServed(error=missing.message))
        return
    except generation.InvalidSpec as unfit:
        builder.block(ref, Invalid(error=unfit.message))
        return
    record_cluster_uid(builder, snapshot, prerequisites)
    if versions.stop is not None:
        builder.block(ref, versions.stop)
    is_scaling = may_scale(snapshot)
    used = [
        template
        for pool in wanted
        for template in pools.reconcile_pool(
            builder, snapshot, pool, versions.pools[pool.id], prerequisites, is_scaling
        )
    ]
    for id, deployment in removed(lc.name, management, {pool.id: pool for pool in wanted}):
        remove_pool(builder, snapshot, deployment, id)
    if management.control_plane is not None:
        used.append(control_plane_infrastructure(management.control_plane))
    # Templates that this plan writes are in use.
    used += [(action.object.kind, action.object.name) for action in builder.actions]
    templates.delete_unused(builder, lc, management, used)
    _warn(builder, snapshot, wanted)


def _warn(builder: PlanBuilder, snapshot: PoolsSnapshot, wanted: Sequence[Pool]) -> None:
    """Warn of ignored min and max, unmanaged workers, removed pools and a pending pivot."""
    lc, management, ref = snapshot.cluster, snapshot.management, cluster_ref(snapshot)
    for pool in wanted:
        if (warning := pools.autoscaling_warning(lc, pool.id, pool.spec)) is not None:
            builder.block(pools.pool_ref(snapshot, pool), warning)
    if (workers := unclaimed(lc.name, management, {pool.id: pool for pool in wanted})) is not None:
        warning = WorkersUnclaimed(cluster=lc.name, name=meta.name(workers), replicas=replicas(workers))
        builder.block(ref_to(workers), warning)
    if not wanted and removed(lc.name, management, {}):
        builder.block(ref, AllPoolsRemoved(cluster=lc.name))
    if not may_scale(snapshot) and any(pool.spec.replicas for pool in wanted):
        if lc.spec.pivot == Pivot.NEVER:
            builder.block(ref, ControlPlanePending(cluster=lc.name))
        else:
            builder.block(ref, NotPivoted(cluster=lc.name, error=snapshot.workload.error))
