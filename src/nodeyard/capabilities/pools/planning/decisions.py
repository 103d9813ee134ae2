"""Explains a cluster, a pool or a node for `why`: the rule that applied, the candidates, and the remedies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.blocks import ClusterPaused, Foreign
from nodeyard.capabilities.pools.messages.removals import DeploymentPaused, Draining, PodAwaited, Undrained
from nodeyard.capabilities.pools.messages.states import (
    AddPoolAgain,
    AsSpecified,
    Autoscaled,
    ChangePolicy,
    ChangeReplicas,
    ControlPlaneNotComplete,
    CreateClass,
    FixBudget,
    FixClass,
    FixKeys,
    ForgetCluster,
    MachineState,
    MoveOut,
    Provisioning,
    Reconciled,
    Rolling,
    Scaling,
    Unpause,
    UnpauseDeployment,
    WaitForControlPlane,
)
from nodeyard.capabilities.pools.planning.machine_state import (
    counters,
    is_initialized,
    is_paused,
    is_settled,
    pool_of,
    replicas,
)
from nodeyard.capabilities.pools.planning.pools import Pool
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot
from nodeyard.kube.json import Object
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.message import Message
from nodeyard.plan.model import Action, Blocked, Candidate, Decision, ObjectRef

_REMEDIES: Final[Mapping[str, tuple[Message, ...]]] = {
    Reason.NODE_CLASS_NOT_FOUND: (CreateClass(),),
    Reason.NODE_CLASS_UNFIT: (FixClass(),),
    Reason.KEY_REFUSED: (FixKeys(),),
    Reason.DRAIN_TIMEOUT: (FixBudget(), ChangePolicy(), AddPoolAgain()),
    Reason.DRAINING: (AddPoolAgain(), ChangePolicy()),
    Reason.CLUSTER_PAUSED: (Unpause(),),
    Reason.PAUSED: (UnpauseDeployment(),),
    Reason.CLUSTER_GONE: (ForgetCluster(),),
    Reason.SELF_MANAGED: (MoveOut(),),
    Reason.NOT_PIVOTED: (WaitForControlPlane(),),
    Reason.CONTROL_PLANE_PENDING: (WaitForControlPlane(),),
    Reason.AS_SPECIFIED: (ChangeReplicas(),),
}
_WARNINGS: Final = (Reason.AUTOSCALING_IGNORED, Reason.AUTOSCALING_INCOMPLETE, Reason.ALL_POOLS_REMOVED)


def decide(ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], builder: PlanBuilder) -> Decision | None:
    """Explain an object; None if it does not belong to this cluster."""
    lc = snapshot.cluster
    if ref.kind == names.CLUSTER_KIND and ref.name == lc.name:
        return _explain_cluster(ref, snapshot, wanted, builder)
    if ref.kind == "MachineDeployment" and ref.namespace == names.namespace(lc.name):
        return _explain_pool(ref, snapshot, wanted, builder)
    return _explain_node(ref, snapshot, wanted, builder) if ref.kind == "Node" else None


def _decision(ref: ObjectRef, message: Message, candidates: Iterable[Candidate] = ()) -> Decision:
    return Decision.of(ref, message, candidates, _REMEDIES.get(message.reason, ()))


# clusters


def _explain_cluster(ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], builder: PlanBuilder) -> Decision:
    candidates = [_pool_candidate(snapshot, pool, builder) for pool in wanted]
    known = {pool.lookup.name for pool in wanted}
    for name, deployment in sorted(snapshot.management.deployments.items()):
        if not pool_of(snapshot.cluster.name, deployment) and name not in known:
            candidates.append(Candidate.of(name, Foreign(name=name)))
    if (blocked := _cluster_blocked(builder)) is not None:
        return _decision(ref, blocked.facts, candidates)
    if builder.actions:
        return _decision(ref, builder.actions[0].facts, candidates)
    return _decision(ref, _pending_state(snapshot, wanted, builder), candidates)


def _cluster_blocked(builder: PlanBuilder) -> Blocked | None:
    """Return the first block that affects the whole cluster."""
    found = (each for each in builder.blocked if each.object.kind == names.CLUSTER_KIND)
    return next((each for each in found if each.reason not in _WARNINGS), None)


def _pending_state(snapshot: PoolsSnapshot, wanted: Sequence[Pool], builder: PlanBuilder) -> Message:
    """Return what Cluster API has still to do, in the order of the condition Ready."""
    cluster, control_plane = snapshot.cluster.name, snapshot.management.control_plane
    if control_plane is None or not is_initialized(snapshot):
        return Provisioning(cluster=cluster)
    if not is_settled(control_plane):
        ready = counters(control_plane).ready
        return ControlPlaneNotComplete(cluster=cluster, ready=ready, desired=replicas(control_plane))
    states = (pool_state(snapshot, pool, builder) for pool in wanted)
    return next((each for each in states if not isinstance(each, AsSpecified | Autoscaled)), Reconciled())


def _pool_candidate(snapshot: PoolsSnapshot, pool: Pool, builder: PlanBuilder) -> Candidate:
    refused = _cluster_blocked(builder) if pool.deployment is None else None
    is_taken = pool.refusal is None and (refused is None or refused.is_waiting)
    return Candidate.of(pool.id, pool_state(snapshot, pool, builder), is_taken=is_taken)


# pools


def pool_state(snapshot: PoolsSnapshot, pool: Pool, builder: PlanBuilder) -> Message:
    """Return the state of a pool in the spec: its block, its next action, or the progress of Cluster API."""
    if (planned := _planned(builder, pool.lookup.name)) is not None:
        return planned
    deployment, id, display_name = pool.deployment, pool.id, pool.spec.display_name
    if deployment is None:
        refused = _cluster_blocked(builder)
        pending: Message = Provisioning(cluster=snapshot.cluster.name) if refused is None else refused.facts
        return pending
    if (paused := pause_of(snapshot, pool, deployment)) is not None:
        return paused
    counted, desired = counters(deployment), replicas(deployment)
    if is_settled(deployment):
        if snapshot.cluster.is_pool_autoscaled(pool.spec):
            return Autoscaled(pool=id, display_name=display_name, min=pool.spec.min, max=pool.spec.max)
        return AsSpecified(pool=id, display_name=display_name, cluster=snapshot.cluster.name, desired=desired)
    if counted.up_to_date < counted.replicas:
        return Rolling(pool=id, display_name=display_name, up_to_date=counted.up_to_date, desired=desired)
    return Scaling(pool=id, display_name=display_name, available=counted.available, desired=desired)


def pause_of(snapshot: PoolsSnapshot, pool: Pool, deployment: Object) -> Message | None:
    """Return why Cluster API leaves a pool as it is; None if neither the Cluster nor the pool is paused."""
    if is_paused(snapshot.management.cluster):
        return ClusterPaused(cluster=snapshot.cluster.name)
    if is_paused(deployment):
        return DeploymentPaused(pool=pool.id, display_name=pool.spec.display_name)
    return None


def _planned(builder: PlanBuilder, deployment: str) -> Message | None:
    """Return the first block of a MachineDeployment, else its first action."""
    about: list[Blocked | Action] = [*builder.blocked, *builder.actions]
    found: Iterator[Message] = (
        each.facts
        for each in about
        if each.object.kind == "MachineDeployment" and each.object.name == deployment and each.reason not in _WARNINGS
    )
    return next(found, None)


def _explain_pool(
    ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], builder: PlanBuilder
) -> Decision | None:
    for pool in wanted:
        if pool.lookup.name == ref.name:
            return _decision(ref, pool_state(snapshot, pool, builder), _machines(snapshot, ref.name))
    deployment = snapshot.management.deployments.get(ref.name)
    if deployment is None:
        return None
    if pool_of(snapshot.cluster.name, deployment):
        return _explain_removed_pool(ref, ref.name, snapshot, builder)
    if (planned := _planned(builder, ref.name)) is not None:
        return _decision(ref, planned, _machines(snapshot, ref.name))
    return _decision(ref, Foreign(name=ref.name))


def _explain_removed_pool(ref: ObjectRef, deployment: str, snapshot: PoolsSnapshot, builder: PlanBuilder) -> Decision:
    """Explain a pool that is no longer in the spec."""
    candidates = _machines(snapshot, deployment)
    pool = pool_of(snapshot.cluster.name, snapshot.management.deployments[deployment])
    planned = _planned(builder, deployment) or Draining(pool=pool)
    if isinstance(planned, Undrained):
        candidates += _blocking_pods(snapshot, planned)
    return _decision(ref, planned, candidates)


def _blocking_pods(snapshot: PoolsSnapshot, undrained: Undrained) -> list[Candidate]:
    """Return the pods that block a drain, with the API server's last message, such as the PodDisruptionBudget."""
    status = snapshot.cluster.status.worker_pools.get(undrained.pool)
    errors = {each.pod: each.message for each in status.blocking_pods} if status is not None else {}
    return [
        Candidate.of(each.pod, PodAwaited(node=each.node, error=errors.get(each.pod, "")))
        for each in undrained.blocking_pods
    ]


def _machines(snapshot: PoolsSnapshot, deployment: str) -> list[Candidate]:
    return [
        Candidate(
            name=machine.node or machine.metadata.name,
            is_taken=True,
            reason=machine.status.phase or "Pending",
            facts=MachineState(
                machine=machine.metadata.name, version=machine.spec.version, message=_not_ready_message(machine)
            ),
        )
        for machine in snapshot.management.machines_of(deployment)
    ]


def _not_ready_message(machine: Machine) -> str:
    """Return the message of the Machine's Ready condition if it is not True."""
    found = (each for each in machine.status.conditions if each.type == "Ready" and each.status != "True")
    return " ".join(next((each.message for each in found if each.message), "").split())


def _explain_node(
    ref: ObjectRef, snapshot: PoolsSnapshot, wanted: Sequence[Pool], builder: PlanBuilder
) -> Decision | None:
    for machine in snapshot.management.machines:
        if machine.node != ref.name:
            continue
        for pool in wanted:
            if pool.lookup.name == machine.deployment:
                return _decision(ref, pool_state(snapshot, pool, builder))
        if machine.deployment in snapshot.management.deployments:
            return _explain_removed_pool(ref, machine.deployment, snapshot, builder)
    return None
