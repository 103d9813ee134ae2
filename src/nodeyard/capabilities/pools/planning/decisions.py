"""Explains a cluster, a pool or a node for `why`: the rule that applied, the candidates, and the remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation.autoscaling import is_autoscaled
from nodeyard.capabilities.pools.planning.deployment_lookup import pool_of
from nodeyard.capabilities.pools.planning.machine_state import counters, is_initialized, is_settled, replicas
from nodeyard.capabilities.pools.planning.pools import Pool
from nodeyard.capabilities.pools.planning.versions import Versions
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot
from nodeyard.capabilities.pools.types import resolved_pools
from nodeyard.kube.json import Object
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Blocked, Candidate, Decision, ObjectRef

_CHANGES: Mapping[str, tuple[Reason, ...]] = {
    Reason.NODE_CLASS_NOT_FOUND: (Reason.CREATE_CLASS,),
    Reason.NODE_CLASS_UNFIT: (Reason.MEND_CLASS,),
    Reason.KEY_REFUSED: (Reason.MEND_KEYS,),
    Reason.DRAIN_TIMEOUT: (Reason.MEND_BUDGET, Reason.CHANGE_POLICY, Reason.READD_POOL),
    Reason.DRAINING: (Reason.READD_POOL, Reason.CHANGE_POLICY),
    Reason.CLUSTER_PAUSED: (Reason.END_PAUSE,),
    Reason.CLUSTER_GONE: (Reason.FORGET_CLUSTER,),
    Reason.SELF_MANAGED: (Reason.MOVE_OUT,),
    Reason.NOT_PIVOTED: (Reason.WAIT_CONTROL_PLANE,),
    Reason.CONTROL_PLANE_PENDING: (Reason.WAIT_CONTROL_PLANE,),
    Reason.AS_SPECIFIED: (Reason.CHANGE_REPLICAS,),
}
_WARNINGS = (Reason.AUTOSCALING_IGNORED, Reason.AUTOSCALING_INCOMPLETE, Reason.ALL_POOLS_REMOVED)
_HEALTHY = (Reason.AS_SPECIFIED, Reason.AUTOSCALED)


def decide(
    ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], versions: Versions, builder: PlanBuilder
) -> Decision | None:
    """Explain an object; None if it does not belong to this cluster."""
    lc = snapshot.cluster
    if ref.kind == names.CLUSTER_KIND and ref.name == lc.name:
        return _explain_cluster(ref, snapshot, wanted, versions, builder)
    if ref.kind == "MachineDeployment" and ref.namespace == names.namespace(lc.name):
        return _explain_pool(ref, snapshot, wanted, builder)
    return _explain_node(ref, snapshot, wanted, builder) if ref.kind == "Node" else None


def _decision(ref: ObjectRef, reason: str, facts: Object, candidates: Sequence[Candidate] = ()) -> Decision:
    changes = tuple(each.value for each in _CHANGES.get(reason, ()))
    return Decision(object=ref, rule=reason, facts=facts, candidates=tuple(candidates), would_change=changes)


def _explain_cluster(
    ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], versions: Versions, builder: PlanBuilder
) -> Decision:
    candidates = [_pool_candidate(snapshot, pool, versions, builder) for pool in wanted]
    for name, deployment in sorted(snapshot.management.deployments.items()):
        if not pool_of(snapshot.cluster.name, deployment) and not _is_wanted(wanted, name):
            candidates.append(Candidate(name=name, is_taken=False, reason=Reason.FOREIGN.value, facts={"name": name}))
    if (blocked := _cluster_blocked(builder)) is not None:
        return _decision(ref, blocked.reason, blocked.facts, candidates)
    if builder.actions:
        first = builder.actions[0]
        return _decision(ref, first.reason, first.facts, candidates)
    return _decision(ref, *_pending_state(snapshot, wanted, builder), candidates)


def _cluster_blocked(builder: PlanBuilder) -> Blocked | None:
    """Return the first block that affects the whole cluster."""
    found = (each for each in builder.blocked if each.object.kind == names.CLUSTER_KIND)
    return next((each for each in found if each.reason not in _WARNINGS), None)


def _pending_state(snapshot: PoolsSnapshot, wanted: Sequence[Pool], builder: PlanBuilder) -> tuple[str, Object]:
    """Return what Cluster API has still to do, in the order of the condition Ready."""
    facts: Object = {"cluster": snapshot.cluster.name}
    control_plane = snapshot.management.control_plane
    if control_plane is None or not is_initialized(snapshot):
        return Reason.PROVISIONING.value, facts
    if not is_settled(control_plane):
        counted = counters(control_plane)
        return Reason.CONTROL_PLANE_GROWING.value, {
            **facts,
            "ready": counted.ready,
            "desired": replicas(control_plane),
        }
    states = (pool_state(snapshot, pool, builder) for pool in wanted)
    return next((each for each in states if each[0] not in _HEALTHY), (Reason.RECONCILED.value, facts))


def with_display_name(snapshot: PoolsSnapshot, facts: Object) -> Object:
    """Add the displayName of the pool to the facts."""
    pool = resolved_pools(snapshot.cluster.spec.nodes).get(str(facts.get("pool", "")))
    return {**facts, "displayName": pool.display_name} if pool is not None and pool.display_name else facts


def _is_wanted(wanted: Sequence[Pool], deployment: str) -> bool:
    return any(pool.lookup.name == deployment for pool in wanted)


def _pool_candidate(snapshot: PoolsSnapshot, pool: Pool, versions: Versions, builder: PlanBuilder) -> Candidate:
    reason, facts = pool_state(snapshot, pool, builder)
    shown = {**facts, "version": versions.pools.get(pool.id, "")}
    refused = _cluster_blocked(builder) if pool.deployment is None else None
    is_taken = pool.refusal is None and (refused is None or refused.is_waiting)
    return Candidate(name=pool.id, is_taken=is_taken, reason=reason, facts=shown)


def pool_state(snapshot: PoolsSnapshot, pool: Pool, builder: PlanBuilder) -> tuple[str, Object]:
    """Return the state of a pool in the spec: its block, its next action, or the progress of Cluster API."""
    facts: Object = with_display_name(snapshot, {"cluster": snapshot.cluster.name, "pool": pool.id})
    blocked = _blocked(builder, pool.lookup.name)
    if blocked is not None:
        return blocked.reason, blocked.facts
    for action in builder.actions:
        if action.object.kind == "MachineDeployment" and action.object.name == pool.lookup.name:
            return action.reason, action.facts
    deployment = pool.deployment
    if deployment is None:
        refused = _cluster_blocked(builder)
        return (Reason.PROVISIONING.value, facts) if refused is None else (refused.reason, refused.facts)
    counted = counters(deployment)
    facts = {
        **facts,
        "desired": replicas(deployment),
        "available": counted.available,
        "upToDate": counted.up_to_date,
    }
    if is_settled(deployment):
        if is_autoscaled(snapshot.cluster, pool.spec):
            return Reason.AUTOSCALED.value, {**facts, "min": pool.spec.min, "max": pool.spec.max}
        return Reason.AS_SPECIFIED.value, facts
    is_rolling = counted.up_to_date < counted.replicas
    return (Reason.ROLLING if is_rolling else Reason.SCALING).value, facts


def _blocked(builder: PlanBuilder, deployment: str) -> Blocked | None:
    found = (
        each
        for each in builder.blocked
        if each.object.kind == "MachineDeployment" and each.object.name == deployment and each.reason not in _WARNINGS
    )
    return next(found, None)


def _explain_pool(
    ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], builder: PlanBuilder
) -> Decision | None:
    for pool in wanted:
        if pool.lookup.name == ref.name:
            return _decision(ref, *pool_state(snapshot, pool, builder), _machines(snapshot, ref.name))
    deployment = snapshot.management.deployments.get(ref.name)
    if deployment is None:
        return None
    if not pool_of(snapshot.cluster.name, deployment):
        if (blocked := _blocked(builder, ref.name)) is not None:
            return _decision(ref, blocked.reason, blocked.facts, _machines(snapshot, ref.name))
        return _decision(ref, Reason.FOREIGN.value, {"name": ref.name})
    return _explain_removed_pool(ref, ref.name, snapshot, builder)


def _explain_removed_pool(ref: ObjectRef, deployment: str, snapshot: PoolsSnapshot, builder: PlanBuilder) -> Decision:
    """Explain a pool that is no longer in the spec."""
    candidates = _machines(snapshot, deployment)
    blocked = _blocked(builder, deployment)
    if blocked is not None:
        return _decision(ref, blocked.reason, blocked.facts, [*candidates, *_blocking_pods(snapshot, blocked.facts)])
    for action in builder.actions:
        if action.object.name == deployment:
            return _decision(ref, action.reason, action.facts, candidates)
    live = snapshot.management.deployments[deployment]
    facts = {"cluster": snapshot.cluster.name, "pool": pool_of(snapshot.cluster.name, live)}
    return _decision(ref, Reason.DRAINING.value, facts, candidates)


def _blocking_pods(snapshot: PoolsSnapshot, facts: Object) -> list[Candidate]:
    """Return the pods that block a drain, with the API server's last message, such as the PodDisruptionBudget."""
    status = snapshot.cluster.status.worker_pools.get(str(facts.get("pool", "")))
    messages = {each.pod: each.message for each in status.blocking_pods} if status is not None else {}
    return [
        Candidate(
            name=each["pod"],
            is_taken=False,
            reason=Reason.POD_AWAITED.value,
            facts={**each, "error": messages.get(each["pod"], "")},
        )
        for each in facts.get("blockingPods", ())
    ]


def _machines(snapshot: PoolsSnapshot, deployment: str) -> list[Candidate]:
    return [
        Candidate(
            name=machine.node or machine.metadata.name,
            is_taken=True,
            reason=machine.status.phase or "Pending",
            facts={"machine": machine.metadata.name, "version": machine.spec.version, **_not_ready_message(machine)},
        )
        for machine in snapshot.management.machines_of(deployment)
    ]


def _not_ready_message(machine: Machine) -> Object:
    """Return the message of the Machine's Ready condition if it is not True."""
    found = (each for each in machine.status.conditions if each.type == "Ready" and each.status != "True")
    message = next((each.message for each in found if each.message), "")
    return {"message": " ".join(message.split())} if message else {}


def _explain_node(
    ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], builder: PlanBuilder
) -> Decision | None:
    for machine in snapshot.management.machines:
        if machine.node != ref.name:
            continue
        for pool in wanted:
            if pool.lookup.name == machine.deployment:
                return _decision(ref, *pool_state(snapshot, pool, builder))
        if machine.deployment in snapshot.management.deployments:
            return _explain_removed_pool(ref, machine.deployment, snapshot, builder)
    return None
