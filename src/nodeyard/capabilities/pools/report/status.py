"""Status of a LatticeCluster after a reconcile, from snapshot, plan and outcome; conditions of all kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.removals import PodEvicted, Undrained
from nodeyard.capabilities.pools.messages.states import (
    ControlPlaneNotComplete,
    Provisioning,
    Reconciled,
    Rolling,
    Scaling,
)
from nodeyard.capabilities.pools.plan import resolve
from nodeyard.capabilities.pools.planning.cluster_objects import cluster_ref
from nodeyard.capabilities.pools.planning.decisions import pause_of
from nodeyard.capabilities.pools.planning.machine_state import (
    counters,
    infrastructure_of,
    is_initialized,
    is_pivoted,
    is_settled,
    machine_version,
    may_scale,
    pool_of,
    replicas,
)
from nodeyard.capabilities.pools.planning.pools import Pool
from nodeyard.capabilities.pools.planning.rollout import has_outdated
from nodeyard.capabilities.pools.reasons import (
    DRAIN_REASONS,
    POOL_CHANGES,
    REJECTIONS,
    REMOVAL_REASONS,
    VERSION_REASONS,
    WARNINGS,
    Reason,
)
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import (
    BlockingPod,
    LatticeClusterStatus,
    Phase,
    PoolPhase,
    WorkerPoolStatus,
    total_workers,
)
from nodeyard.kube import meta
from nodeyard.kube.conditions import FALSE, TRUE, find, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.message import Message
from nodeyard.plan.model import Action, Blocked, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import StatusWrite

READY = "Ready"


def condition(type: str, is_true: bool, message: Message, generation: int = 0) -> Condition:
    """Return a condition with the reason and the text of a message."""
    return Condition(
        type=type,
        status=TRUE if is_true else FALSE,
        reason=str(message.reason),
        message=message.text(),
        observed_generation=generation,
    )


ACCEPTED = "Accepted"
PROVISIONED = "Provisioned"
DRAINED = "PoolsDrained"
VERSION_CURRENT = "VersionCurrent"
_TRUE_TEXTS: Mapping[str, str] = {
    READY: Reconciled.sentence,
    ACCEPTED: "Nothing in the spec is refused",
    PROVISIONED: "The control plane is initialized",
    DRAINED: "No removed pool is being drained",
    VERSION_CURRENT: "No upgrade is waiting or stopped",
}
"""The messages of conditions that are True: each says no more than its type."""
LISTED = 50

_REMOVAL_PHASES: Mapping[str, PoolPhase] = {
    Reason.DRAINING: PoolPhase.DRAINING,
    Reason.PODS_UNKNOWN: PoolPhase.DRAINING,
    Reason.DRAIN_OPTIONS_PENDING: PoolPhase.DELETING,
    Reason.DEPLOYMENT_DELETING: PoolPhase.DELETING,
    Reason.PAUSED: PoolPhase.PAUSED,
}
_BAD = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


class Account:
    """One reconcile of a cluster, with blocks and failures sorted by subject."""

    def __init__(self, snapshot: PoolsSnapshot, plan: Plan, outcome: Outcome) -> None:
        self.snapshot = snapshot
        self.plan = plan
        self.pools = resolve(snapshot)
        self.blocked = sorted((each for each in plan.blocked if each.reason not in WARNINGS), key=_is_not_held)
        self.failures = [each for each in outcome.results if each.result in _BAD]
        self.evictions = [each for each in self.failures if each.action.reason == Reason.POD_EVICTED]
        self.is_finalized = any(action.reason == Reason.FINALIZER_REMOVED for action in plan.actions)
        self._by_deployment = {each.object.name: each for each in reversed(self.blocked) if _is_of_pool(each)}
        self._changes = {
            each.object.name: each
            for each in sorted(plan.actions, key=lambda action: action.reason == Reason.POOL_ROLLED)
            if _is_of_pool(each) and each.reason in POOL_CHANGES
        }

    def blocked_for(self, deployment: str) -> Blocked | None:
        """Return the first block of a pool's MachineDeployment."""
        return self._by_deployment.get(deployment)

    def change_of(self, deployment: str) -> Action | None:
        """Return the change that this reconcile makes to a pool, a rollout first: the snapshot predates it."""
        return self._changes.get(deployment)

    def first(self, reasons: Iterable[Reason]) -> Blocked | None:
        wanted = frozenset(reasons)
        return next((each for each in self.blocked if each.reason in wanted), None)

    @cached_property
    def pool_statuses(self) -> dict[str, WorkerPoolStatus]:
        """The status of each pool by id, including removed pools."""
        pools = {pool.id: _pool_status(self, pool) for pool in self.pools}
        return dict(sorted((pools | _removed_pool_statuses(self, set(pools))).items()))

    @property
    def errors(self) -> list[ActionResult]:
        """Failed writes, except evictions, which the drain reports."""
        return [each for each in self.failures if each.action.reason != Reason.POD_EVICTED]


def _is_not_held(blocked: Blocked) -> bool:
    """Sort key: blocks that need an approval come first, because all others depend on it."""
    return blocked.reason != EngineReason.NEEDS_APPROVAL


def _is_of_pool(about: Blocked | Action) -> bool:
    return about.object.kind == "MachineDeployment"


def status(account: Account, now: datetime) -> Sequence[StatusWrite]:
    snapshot = account.snapshot
    if account.is_finalized or snapshot.workload.is_pending:
        return ()
    after = wire(_status_of(account, now))
    if after == wire(snapshot.cluster.status):
        return ()
    return [StatusWrite(object=cluster_ref(snapshot), status=after)]


def _status_of(account: Account, now: datetime) -> LatticeClusterStatus:
    snapshot = account.snapshot
    lc, management = snapshot.cluster, snapshot.management
    pools = account.pool_statuses
    control_plane = management.control_plane
    phase, message = phase_of(snapshot, account.blocked)
    conditions = _conditions(account, phase, now)
    ready = find(conditions, READY)
    return LatticeClusterStatus(
        observed_generation=lc.metadata.generation,
        phase=phase.value,
        message=message or ("" if ready is None or ready.status == TRUE else ready.message),
        version=str(((control_plane or {}).get("status") or {}).get("version") or ""),
        ready_control_plane=counters(control_plane).ready if control_plane else 0,
        ready_workers=sum(pool.ready for pool in pools.values()),
        workers=total_workers(lc.spec.nodes),
        pivoted=is_pivoted(snapshot),
        worker_pools=pools,
        conditions=conditions,
    )


_FAILURES = frozenset({Reason.INVALID, Reason.PROVIDER_NOT_SERVED})


def phase_of(snapshot: PoolsSnapshot, blocked: Sequence[Blocked]) -> tuple[Phase, str]:
    """Return the phase of a LatticeCluster and its message."""
    phase = _phase(snapshot, blocked)
    # A ready cluster reports its own blocks before those of its pools.
    first = next((each for each in blocked if phase is not Phase.READY or not _is_of_pool(each)), None)
    shown = first or next(iter(blocked), None)
    return phase, "" if shown is None else shown.facts.text()


def _phase(snapshot: PoolsSnapshot, blocked: Sequence[Blocked]) -> Phase:
    if snapshot.cluster.is_deleting:
        return Phase.DELETING
    if any(each.reason in _FAILURES for each in blocked):
        return Phase.FAILED
    if snapshot.management.cluster is None:
        return Phase.PENDING
    if may_scale(snapshot):
        return Phase.READY
    return Phase.PIVOTING if is_initialized(snapshot) else Phase.PROVISIONING


# pools


def _pool_status(account: Account, pool: Pool) -> WorkerPoolStatus:
    snapshot, deployment, spec = account.snapshot, pool.deployment, pool.spec
    blocked = account.blocked_for(pool.lookup.name)
    if deployment is None:
        message = blocked.facts.text() if blocked else ""
        phase = PoolPhase.BLOCKED if blocked else PoolPhase.PENDING
        return WorkerPoolStatus(
            desired=spec.replicas, phase=phase.value, message=message, display_name=spec.display_name
        )
    known = _deployment_fields(snapshot, deployment)
    phase, message = _pool_phase(account, pool, deployment, blocked)
    return WorkerPoolStatus(
        desired=replicas(deployment) if snapshot.cluster.is_pool_autoscaled(spec) else spec.replicas,
        phase=phase.value,
        message=message,
        display_name=spec.display_name,
        **known,
    )


def _deployment_fields(snapshot: PoolsSnapshot, deployment: Object) -> Object:
    """Return the fields copied from the MachineDeployment; the previous counters if observedGeneration is stale."""
    counted, name = counters(deployment), deployment["metadata"]["name"]
    template = snapshot.management.template(*infrastructure_of(deployment))
    known: Object = {
        "machine_deployment": name,
        "version": machine_version(deployment),
        "node_class": template.metadata.annotations.get(names.NODE_CLASS, "") if template else "",
    }
    if counted.is_current:
        numbers = (counted.replicas, counted.ready, counted.available, counted.up_to_date)
    else:
        pool = pool_of(snapshot.cluster.name, deployment)
        before = snapshot.cluster.status.worker_pools.get(pool, WorkerPoolStatus())
        numbers = (before.replicas, before.ready, before.available, before.up_to_date)
    return {**known, **dict(zip(("replicas", "ready", "available", "up_to_date"), numbers, strict=True))}


def _pool_phase(account: Account, pool: Pool, deployment: Object, blocked: Blocked | None) -> tuple[PoolPhase, str]:
    management = account.snapshot.management
    if blocked is not None:
        return PoolPhase.BLOCKED, blocked.facts.text()
    if (paused := pause_of(account.snapshot, pool, deployment)) is not None:
        return PoolPhase.PAUSED, paused.text()
    if change := account.change_of(pool.lookup.name):
        phase = PoolPhase.ROLLING if change.reason == Reason.POOL_ROLLED else PoolPhase.SCALING
        return phase, change.facts.text()
    counted, desired, name = counters(deployment), replicas(deployment), pool.spec.display_name
    if (counted.is_current and counted.up_to_date < counted.replicas) or has_outdated(management, deployment):
        rolling = Rolling(pool=pool.id, display_name=name, up_to_date=counted.up_to_date, desired=desired)
        return PoolPhase.ROLLING, rolling.text()
    if not is_settled(deployment):
        scaling = Scaling(pool=pool.id, display_name=name, available=counted.available, desired=desired)
        return PoolPhase.SCALING, scaling.text()
    return PoolPhase.READY, ""


def _removed_pool_statuses(account: Account, wanted: set[str]) -> dict[str, WorkerPoolStatus]:
    """Return the status of pools that are no longer in the spec and still exist."""
    snapshot = account.snapshot
    found: dict[str, WorkerPoolStatus] = {}
    for name, deployment in sorted(snapshot.management.deployments.items()):
        pool = pool_of(snapshot.cluster.name, deployment)
        if not pool or pool in wanted:
            continue
        blocked = account.blocked_for(name)
        phase = PoolPhase.DELETING if meta.is_deleting(deployment) else PoolPhase.DRAINING
        if blocked is not None:
            phase = _REMOVAL_PHASES.get(blocked.reason, PoolPhase.BLOCKED)
        found[pool] = WorkerPoolStatus(
            phase=phase.value,
            message=blocked.facts.text() if blocked else "",
            blocking_pods=_blocking(account, pool, blocked),
            **_deployment_fields(snapshot, deployment),
        )
    return found


def _blocking(account: Account, pool: str, blocked: Blocked | None) -> tuple[BlockingPod, ...]:
    """Return the pods that block a drain, with the API server's message if their eviction was rejected."""
    undrained = blocked.facts if blocked is not None else None
    waiting = undrained.blocking_pods if isinstance(undrained, Undrained) else ()
    found = {each.pod: BlockingPod(pod=each.pod, node=each.node) for each in waiting}
    for failure in account.evictions:
        evicted = failure.action.facts
        if isinstance(evicted, PodEvicted) and evicted.pool == pool:
            found[evicted.pod] = BlockingPod(pod=evicted.pod, node=evicted.node, message=failure.message)
    return tuple(pod for _name, pod in sorted(found.items())[:LISTED])


# conditions


def _conditions(account: Account, phase: Phase, now: datetime) -> tuple[Condition, ...]:
    lc = account.snapshot.cluster
    fresh = (
        _ready(account, phase),
        _condition_of(ACCEPTED, account.first(REJECTIONS)),
        _provisioned(account, phase),
        _drained(account),
        _condition_of(VERSION_CURRENT, account.first(VERSION_REASONS)),
    )
    conditions = lc.status.conditions
    for each in fresh:
        observed = msgspec.structs.replace(each, observed_generation=lc.metadata.generation)
        conditions = with_condition(conditions, observed, now)
    return conditions


def _condition_of(kind: str, blocked: Blocked | None) -> Condition:
    """Return a condition that is False if there is a block."""
    if blocked is not None:
        return condition(kind, False, blocked.facts)
    return Condition(type=kind, status=TRUE, reason=Reason.RECONCILED, message=_TRUE_TEXTS[kind])


def _ready(account: Account, phase: Phase) -> Condition:
    snapshot = account.snapshot
    if account.errors:
        first = account.errors[0]
        return Condition(type=READY, status=FALSE, reason=f"{first.action.reason}Failed", message=_failure(first))
    for blocked in account.blocked:
        if blocked.reason not in REMOVAL_REASONS:
            return _condition_of(READY, blocked)
    if phase is not Phase.READY:
        return condition(READY, False, Provisioning(cluster=snapshot.cluster.name))
    control_plane = snapshot.management.control_plane
    if control_plane is not None and not is_settled(control_plane):
        ready, desired = counters(control_plane).ready, replicas(control_plane)
        growing = ControlPlaneNotComplete(cluster=snapshot.cluster.name, ready=ready, desired=desired)
        return condition(READY, False, growing)
    for pool in account.pools:
        status = account.pool_statuses[pool.id]
        if status.phase != PoolPhase.READY:
            message = status.message or f"Pool {pool.id} has no MachineDeployment yet"
            return Condition(type=READY, status=FALSE, reason=status.phase or "Pending", message=message)
    return _condition_of(READY, None)


def _failure(result: ActionResult) -> str:
    return f"{result.action.object}: {result.message}"


def _provisioned(account: Account, phase: Phase) -> Condition:
    if phase is Phase.READY:
        return _condition_of(PROVISIONED, None)
    blocked = account.first((Reason.NOT_PIVOTED, Reason.CONTROL_PLANE_PENDING, *REJECTIONS))
    if blocked is not None:
        return _condition_of(PROVISIONED, blocked)
    return condition(PROVISIONED, False, Provisioning(cluster=account.snapshot.cluster.name))


def _drained(account: Account) -> Condition:
    blocked = account.first((Reason.DRAIN_TIMEOUT, Reason.WORKLOAD_UNREACHABLE)) or account.first(DRAIN_REASONS)
    drained = _condition_of(DRAINED, blocked)
    refused = [_failure(each) for each in account.evictions]
    if blocked is None or not refused:
        return drained
    message = f"{drained.message}. {'; '.join(refused[:LISTED])}"
    return Condition(type=DRAINED, status=FALSE, reason=drained.reason, message=message[:32768])


# serialization


def wire(status: LatticeClusterStatus) -> Object:
    """Return the status as the API server stores it: the design's fields always, other fields if not empty."""
    found: Object = {
        "observedGeneration": status.observed_generation,
        "phase": status.phase,
        "workers": status.workers,
        "readyWorkers": status.ready_workers,
        "readyControlPlane": status.ready_control_plane,
        "pivoted": status.pivoted,
        "workerPools": {id: _pool_wire(pool) for id, pool in status.worker_pools.items()},
        "conditions": to_wire(status.conditions),
    }
    return {**found, **_non_empty(message=status.message, version=status.version)}


def _pool_wire(pool: WorkerPoolStatus) -> Object:
    found: Object = {
        "desired": pool.desired,
        "ready": pool.ready,
        "available": pool.available,
        "replicas": pool.replicas,
        "upToDate": pool.up_to_date,
    }
    if pool.blocking_pods:
        found["blockingPods"] = [
            {"pod": each.pod, "node": each.node, "message": each.message} for each in pool.blocking_pods
        ]
    return {
        **found,
        **_non_empty(
            displayName=pool.display_name,
            nodeClass=pool.node_class,
            phase=pool.phase,
            message=pool.message,
            machineDeployment=pool.machine_deployment,
            version=pool.version,
        ),
    }


def _non_empty(**values: str) -> Object:
    return {name: value for name, value in values.items() if value}
