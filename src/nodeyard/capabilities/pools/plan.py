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
from enum import StrEnum
from typing import Any

from nodeyard.capabilities.pools import generation, names
from nodeyard.capabilities.pools.planning import pools, templates
from nodeyard.capabilities.pools.planning.cluster_objects import (
    apply_cluster_objects,
    cluster_ref,
    is_cluster_gone,
    record_cluster_uid,
)
from nodeyard.capabilities.pools.planning.decisions import decide, with_display_name
from nodeyard.capabilities.pools.planning.deletion import delete_cluster
from nodeyard.capabilities.pools.planning.deployment_lookup import find_deployment, removed
from nodeyard.capabilities.pools.planning.machine_state import (
    control_plane_infrastructure,
    is_deleting,
    is_paused,
    may_scale,
)
from nodeyard.capabilities.pools.planning.pools import Pool
from nodeyard.capabilities.pools.planning.removals import remove_pool
from nodeyard.capabilities.pools.planning.versions import PoolState, Versions, sequence
from nodeyard.capabilities.pools.planning.warnings import add_warnings
from nodeyard.capabilities.pools.reasons import WAITS, Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import resolved_pools
from nodeyard.capabilities.pools.validation.clusters import cluster_fault
from nodeyard.kube.json import Object
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import ObjectRef, Planned, Verb, Write


def plan(snapshot: PoolsSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    builder = PoolsPlanBuilder(now, snapshot)
    snapshot = keep_provider_family(snapshot)
    wanted = resolve(snapshot)
    versions = sequence(snapshot, _pool_states(snapshot, wanted))
    _plan(builder, snapshot, wanted, versions)
    decisions = [decide(ref, snapshot, wanted, versions, builder) for ref in explain]
    found = [decision for decision in decisions if decision is not None]
    return builder.planned(names.CAPABILITY, names.cluster_key(snapshot.cluster.name), found)


class PoolsPlanBuilder(PlanBuilder):
    """Builds a plan whose facts include the pool's displayName."""

    def __init__(self, now: datetime, snapshot: PoolsSnapshot) -> None:
        super().__init__(now, WAITS)
        self._snapshot = snapshot

    def act_with_facts(
        self, verb: Verb, ref: ObjectRef, reason: StrEnum, facts: Object, write: Write, **more: Any
    ) -> str:
        return super().act_with_facts(verb, ref, reason, with_display_name(self._snapshot, facts), write, **more)

    def block_with_facts(self, ref: ObjectRef, reason: StrEnum, facts: Object) -> None:
        super().block_with_facts(ref, reason, with_display_name(self._snapshot, facts))


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
    lc, management = snapshot.cluster, snapshot.management
    ref, facts = cluster_ref(snapshot), {"cluster": lc.name}
    if is_paused(management.cluster):
        builder.block_with_facts(ref, Reason.CLUSTER_PAUSED, facts)
    elif lc.is_deleting:
        delete_cluster(builder, snapshot)
    elif fault := cluster_fault(lc):
        builder.block_with_facts(ref, Reason.INVALID, {**facts, "error": fault})
    elif management.namespace is not None and management.namespace.metadata.deletion_timestamp is not None:
        builder.block_with_facts(ref, Reason.NAMESPACE_GOING, {**facts, "namespace": names.namespace(lc.name)})
    elif is_deleting(management.cluster):
        builder.block_with_facts(ref, Reason.CLUSTER_GOING, facts)
    elif is_cluster_gone(snapshot):
        builder.block_with_facts(ref, Reason.CLUSTER_GONE, facts)
    else:
        _reconcile(builder, snapshot, wanted, versions)


def _reconcile(builder: PlanBuilder, snapshot: PoolsSnapshot, wanted: Sequence[Pool], versions: Versions) -> None:
    lc, ref = snapshot.cluster, cluster_ref(snapshot)
    try:
        prerequisites = apply_cluster_objects(builder, snapshot, versions.control_plane)
    except generation.NotServed as missing:
        builder.block_with_facts(ref, Reason.PROVIDER_NOT_SERVED, {"cluster": lc.name, "error": missing.message})
        return
    except generation.InvalidSpec as unfit:
        builder.block_with_facts(ref, Reason.INVALID, {"cluster": lc.name, "error": unfit.message})
        return
    record_cluster_uid(builder, snapshot, prerequisites)
    if versions.stop is not None:
        builder.block_with_facts(ref, versions.stop.reason, {"cluster": lc.name, **versions.stop.facts})
    is_scaling = may_scale(snapshot)
    used = [
        template
        for pool in wanted
        for template in pools.reconcile_pool(
            builder, snapshot, pool, versions.pools[pool.id], prerequisites, is_scaling
        )
    ]
    for id, deployment in removed(lc.name, snapshot.management, {pool.id: pool for pool in wanted}):
        remove_pool(builder, snapshot, deployment, id)
    if snapshot.management.control_plane is not None:
        used.append(control_plane_infrastructure(snapshot.management.control_plane))
    templates.delete_unused(builder, lc, snapshot.management, [*used, *_templates_in_plan(builder)])
    add_warnings(builder, snapshot, wanted)


def _templates_in_plan(builder: PlanBuilder) -> list[tuple[str, str]]:
    """Return the objects that this plan writes: templates among them are in use."""
    return [(action.object.kind, action.object.name) for action in builder.actions]
