"""Why a cluster, a pool or a node is as it is: the rule that applied, what was looked at, and what would change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation.autoscaling import is_autoscaled
from nodeyard.capabilities.pools.planning.adoption import pool_of
from nodeyard.capabilities.pools.planning.observed import counters, is_settled, replicas
from nodeyard.capabilities.pools.planning.pools import Pool
from nodeyard.capabilities.pools.planning.versions import Versions
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.kube.json import Object
from nodeyard.plan.draft import Draft
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
_NOTICES = (Reason.AUTOSCALING_IGNORED, Reason.ALL_POOLS_REMOVED)


def decide(
    ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], versions: Versions, draft: Draft
) -> Decision | None:
    """None where the object has nothing to do with this cluster."""
    lc = snapshot.cluster
    if ref.kind == names.CLUSTER_KIND and ref.name == lc.name:
        return _cluster(ref, snapshot, wanted, versions, draft)
    if ref.kind == "MachineDeployment" and ref.namespace == names.namespace(lc.name):
        return _pool(ref, snapshot, wanted, draft)
    if ref.kind == names.CLASS_KIND:
        return _class(ref, snapshot, wanted)
    return _node(ref, snapshot, wanted, draft) if ref.kind == "Node" else None


def _decision(ref: ObjectRef, reason: str, facts: Object, candidates: Sequence[Candidate] = ()) -> Decision:
    changes = tuple(each.value for each in _CHANGES.get(reason, ()))
    return Decision(object=ref, rule=reason, facts=facts, candidates=tuple(candidates), would_change=changes)


def _cluster(
    ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], versions: Versions, draft: Draft
) -> Decision:
    candidates = [_pool_candidate(snapshot, pool, versions, draft) for pool in wanted]
    for name, deployment in sorted(snapshot.management.deployments.items()):
        if not pool_of(snapshot.cluster.name, deployment) and not _is_wanted(wanted, name):
            candidates.append(Candidate(name=name, is_taken=False, reason=Reason.FOREIGN.value, facts={"name": name}))
    for blocked in draft.blocked:
        if blocked.object.kind == names.CLUSTER_KIND and blocked.reason not in _NOTICES:
            return _decision(ref, blocked.reason, blocked.facts, candidates)
    if draft.actions:
        first = draft.actions[0]
        return _decision(ref, first.reason, first.facts, candidates)
    return _decision(ref, Reason.RECONCILED.value, {"cluster": snapshot.cluster.name}, candidates)


def _is_wanted(wanted: Sequence[Pool], deployment: str) -> bool:
    return any(pool.belonging.name == deployment for pool in wanted)


def _pool_candidate(snapshot: PoolsSnapshot, pool: Pool, versions: Versions, draft: Draft) -> Candidate:
    reason, facts = standing(snapshot, pool, draft)
    shown = {**facts, "version": versions.pools.get(pool.id, "")}
    return Candidate(name=pool.id, is_taken=pool.refusal is None, reason=reason, facts=shown)


def standing(snapshot: PoolsSnapshot, pool: Pool, draft: Draft) -> tuple[str, Object]:
    """How a pool that is wanted stands: what blocks it, what is done to it, or what Cluster API does."""
    facts: Object = {"cluster": snapshot.cluster.name, "pool": pool.id}
    blocked = _blocked(draft, pool.belonging.name)
    if blocked is not None:
        return blocked.reason, blocked.facts
    for action in draft.actions:
        if action.object.kind == "MachineDeployment" and action.object.name == pool.belonging.name:
            return action.reason, action.facts
    deployment = pool.deployment
    if deployment is None:
        return Reason.PROVISIONING.value, facts
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


def _blocked(draft: Draft, deployment: str) -> Blocked | None:
    found = (
        each
        for each in draft.blocked
        if each.object.kind == "MachineDeployment" and each.object.name == deployment and each.reason not in _NOTICES
    )
    return next(found, None)


def _pool(ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], draft: Draft) -> Decision | None:
    for pool in wanted:
        if pool.belonging.name == ref.name:
            return _decision(ref, *standing(snapshot, pool, draft), _machines(snapshot, ref.name))
    deployment = snapshot.management.deployments.get(ref.name)
    if deployment is None:
        return None
    if not pool_of(snapshot.cluster.name, deployment):
        return _decision(ref, Reason.FOREIGN.value, {"name": ref.name})
    return _leaving(ref, ref.name, snapshot, draft)


def _leaving(ref: ObjectRef, deployment: str, snapshot: PoolsSnapshot, draft: Draft) -> Decision:
    """Of a pool that is not wanted any more."""
    candidates = _machines(snapshot, deployment)
    blocked = _blocked(draft, deployment)
    if blocked is not None:
        return _decision(ref, blocked.reason, blocked.facts, candidates)
    for action in draft.actions:
        if action.object.name == deployment:
            return _decision(ref, action.reason, action.facts, candidates)
    live = snapshot.management.deployments[deployment]
    facts = {"cluster": snapshot.cluster.name, "pool": pool_of(snapshot.cluster.name, live)}
    return _decision(ref, Reason.DRAINING.value, facts, candidates)


def _machines(snapshot: PoolsSnapshot, deployment: str) -> list[Candidate]:
    return [
        Candidate(
            name=machine.node or machine.metadata.name,
            is_taken=True,
            reason=machine.status.phase or "Pending",
            facts={"machine": machine.metadata.name, "version": machine.spec.version},
        )
        for machine in snapshot.management.machines_of(deployment)
    ]


def _class(ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool]) -> Decision | None:
    users = [pool for pool in wanted if pool.spec.node_class == ref.name]
    if not users:
        return None
    facts = {"cluster": snapshot.cluster.name, "class": ref.name}
    refused = [pool for pool in users if pool.refusal is not None]
    candidates = [
        Candidate(
            name=pool.id,
            is_taken=pool.refusal is None,
            reason=pool.refusal.reason.value if pool.refusal else Reason.AS_SPECIFIED.value,
            facts=pool.refusal.facts if pool.refusal else facts,
        )
        for pool in users
    ]
    if refused and refused[0].refusal is not None:
        return _decision(ref, refused[0].refusal.reason.value, refused[0].refusal.facts, candidates)
    return _decision(ref, Reason.AS_SPECIFIED.value, facts, candidates)


def _node(ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], draft: Draft) -> Decision | None:
    for machine in snapshot.management.machines:
        if machine.node != ref.name:
            continue
        for pool in wanted:
            if pool.belonging.name == machine.deployment:
                return _decision(ref, *standing(snapshot, pool, draft))
        if machine.deployment in snapshot.management.deployments:
            return _leaving(ref, machine.deployment, snapshot, draft)
    return None
