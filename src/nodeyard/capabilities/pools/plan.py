"""One LatticeCluster, planned: the table of contents. Each step is a module of `planning`.

1. What is being deleted is taken down; what is paused is left alone.
2. The ground is laid: namespace, Cluster, infrastructure, control plane.
3. Each pool is brought to what the spec says, with the version that it is its turn to have.
4. Pools that are not wanted any more are drained, or what their policy says, and deleted.
5. Templates that nothing refers to any more are collected.
6. What somebody asks about is explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from nodeyard.capabilities.pools import generation, names
from nodeyard.capabilities.pools.planning import pools, templates
from nodeyard.capabilities.pools.planning.adoption import belonging, removed
from nodeyard.capabilities.pools.planning.decisions import decide
from nodeyard.capabilities.pools.planning.deletion import delete_cluster
from nodeyard.capabilities.pools.planning.foundation import cluster_ref, is_gone, lay, note
from nodeyard.capabilities.pools.planning.notices import give_notice
from nodeyard.capabilities.pools.planning.observed import control_plane_infrastructure, is_deleting, is_paused
from nodeyard.capabilities.pools.planning.pivot import may_scale
from nodeyard.capabilities.pools.planning.pools import Pool
from nodeyard.capabilities.pools.planning.removals import remove_pool
from nodeyard.capabilities.pools.planning.soundness import cluster_fault
from nodeyard.capabilities.pools.planning.versions import PoolState, Versions, sequence
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import resolved_pools
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import ObjectRef, Planned


def plan(snapshot: PoolsSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    draft = Draft(now)
    snapshot = in_one_family(snapshot)
    wanted = resolve(snapshot)
    versions = sequence(snapshot, _states(snapshot, wanted))
    _plan(draft, snapshot, wanted, versions)
    decisions = [decide(ref, snapshot, wanted, versions, draft) for ref in explain]
    told = [decision for decision in decisions if decision is not None]
    return draft.planned(names.CAPABILITY, names.cluster_key(snapshot.cluster.name), told)


def in_one_family(snapshot: PoolsSnapshot) -> PoolsSnapshot:
    """A cluster keeps to the kinds it was made of, also when the provider has newer ones."""
    infrastructure = snapshot.management.infrastructure
    if infrastructure is None:
        return snapshot
    return replace(snapshot, served=generation.kept(snapshot.served, infrastructure["kind"]))


def resolve(snapshot: PoolsSnapshot) -> list[Pool]:
    """The pools that are wanted, by id."""
    lc = snapshot.cluster
    return [
        pools.resolve(snapshot, id, spec, belonging(lc.name, snapshot.management, id))
        for id, spec in resolved_pools(lc.spec.nodes).items()
    ]


def _states(snapshot: PoolsSnapshot, wanted: Sequence[Pool]) -> list[PoolState]:
    return [
        PoolState(
            pool.id,
            pool.deployment,
            snapshot.management.machines_of(pool.belonging.name),
            pool.refusal is not None,
        )
        for pool in wanted
    ]


def _plan(draft: Draft, snapshot: PoolsSnapshot, wanted: Sequence[Pool], versions: Versions) -> None:
    lc, management = snapshot.cluster, snapshot.management
    ref, facts = cluster_ref(snapshot), {"cluster": lc.name}
    if is_paused(management.cluster):
        draft.block(ref, Reason.CLUSTER_PAUSED, facts)
    elif lc.is_deleting:
        delete_cluster(draft, snapshot)
    elif fault := cluster_fault(lc):
        draft.block(ref, Reason.INVALID, {**facts, "error": fault})
    elif management.namespace is not None and management.namespace.metadata.deletion_timestamp is not None:
        draft.block(ref, Reason.NAMESPACE_GOING, {**facts, "namespace": names.namespace(lc.name)})
    elif is_deleting(management.cluster):
        draft.block(ref, Reason.CLUSTER_GOING, facts)
    elif is_gone(snapshot):
        draft.block(ref, Reason.CLUSTER_GONE, facts)
    else:
        _reconcile(draft, snapshot, wanted, versions)


def _reconcile(draft: Draft, snapshot: PoolsSnapshot, wanted: Sequence[Pool], versions: Versions) -> None:
    lc, ref = snapshot.cluster, cluster_ref(snapshot)
    try:
        ground = lay(draft, snapshot, versions.control_plane)
    except generation.Unserved as missing:
        draft.block(ref, Reason.PROVIDER_NOT_SERVED, {"cluster": lc.name, "error": missing.message})
        return
    except generation.Unfit as unfit:
        draft.block(ref, Reason.INVALID, {"cluster": lc.name, "error": unfit.message})
        return
    note(draft, snapshot, ground)
    if versions.stop is not None:
        draft.block(ref, versions.stop.reason, {"cluster": lc.name, **versions.stop.facts})
    is_scaling = may_scale(snapshot)
    used = [
        template
        for pool in wanted
        for template in pools.keep(draft, snapshot, pool, versions.pools[pool.id], ground, is_scaling)
    ]
    for id, deployment in removed(lc.name, snapshot.management, {pool.id: pool for pool in wanted}):
        remove_pool(draft, snapshot, deployment, id)
    if snapshot.management.control_plane is not None:
        used.append(control_plane_infrastructure(snapshot.management.control_plane))
    templates.collect(draft, lc, snapshot.management, [*used, *_made(draft)])
    give_notice(draft, snapshot, wanted)


def _made(draft: Draft) -> list[tuple[str, str]]:
    """What this plan makes, or notes something on, is in use."""
    return [(action.object.kind, action.object.name) for action in draft.actions]
