"""What a LatticeCluster says of itself after a pass: from what was observed, the plan, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation.autoscaling import is_autoscaled
from nodeyard.capabilities.pools.messages import text
from nodeyard.capabilities.pools.phases import phase_of
from nodeyard.capabilities.pools.plan import resolve
from nodeyard.capabilities.pools.planning.adoption import pool_of
from nodeyard.capabilities.pools.planning.foundation import cluster_ref
from nodeyard.capabilities.pools.planning.observed import (
    counters,
    infrastructure_of,
    is_deleting,
    is_paused,
    is_settled,
    machine_version,
    replicas,
)
from nodeyard.capabilities.pools.planning.pivot import is_pivoted
from nodeyard.capabilities.pools.planning.pools import Pool
from nodeyard.capabilities.pools.planning.rolling import has_outdated
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import (
    BlockingPod,
    LatticeClusterStatus,
    Phase,
    PoolPhase,
    WorkerPoolStatus,
    total_workers,
)
from nodeyard.kube.conditions import to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import Action, Blocked, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import StatusWrite

READY = "Ready"
ACCEPTED = "Accepted"
PROVISIONED = "Provisioned"
DRAINED = "PoolsDrained"
VERSION_CURRENT = "VersionCurrent"
LISTED = 50

NOTICES = frozenset({Reason.AUTOSCALING_IGNORED, Reason.ALL_POOLS_REMOVED, Reason.ORPHAN_DELETES})
REFUSALS = frozenset(
    {
        Reason.INVALID,
        Reason.NODE_CLASS_NOT_FOUND,
        Reason.NODE_CLASS_UNFIT,
        Reason.KEY_REFUSED,
        Reason.PROVIDER_NOT_SERVED,
        Reason.DUPLICATE,
    }
)
DRAINS = frozenset({Reason.DRAINING, Reason.DRAIN_TIMEOUT, Reason.PODS_UNKNOWN, Reason.WORKLOAD_UNREACHABLE})
LEAVING = DRAINS | {Reason.MACHINES_MARKING, Reason.MACHINES_UNSEEN}
"""About pools that go: no fault of those that stay."""
CHANGES = frozenset(
    {Reason.POOL_CREATED, Reason.POOL_UPDATED, Reason.POOL_ROLLED, Reason.POOL_ADOPTED, Reason.POOL_SCALED}
)
"""What is done to a pool that its counters do not know of yet."""
VERSION_STOPS = frozenset({Reason.VERSION_WAITS, Reason.VERSION_STOPPED, Reason.SKEW})
_LEAVING_PHASES: Mapping[str, PoolPhase] = {
    Reason.DRAINING: PoolPhase.DRAINING,
    Reason.PODS_UNKNOWN: PoolPhase.DRAINING,
    Reason.MACHINES_MARKING: PoolPhase.DELETING,
    Reason.DEPLOYMENT_DELETING: PoolPhase.DELETING,
    Reason.PAUSED: PoolPhase.PAUSED,
}
_BAD = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


class Account:
    """A cluster's part in a pass, sorted by what it is about."""

    def __init__(self, snapshot: PoolsSnapshot, plan: Plan, outcome: Outcome) -> None:
        self.snapshot = snapshot
        self.plan = plan
        self.pools = resolve(snapshot)
        self.blocked = sorted((each for each in plan.blocked if each.reason not in NOTICES), key=_waits_by_itself)
        self.failures = [each for each in outcome.results if each.result in _BAD]
        self.evictions = [each for each in self.failures if each.action.reason == Reason.POD_EVICTED]
        self.is_going = any(action.reason == Reason.FINALIZER_REMOVED for action in plan.actions)
        self._by_deployment = {each.object.name: each for each in reversed(self.blocked) if _is_of_pool(each)}
        self._changes = {
            each.object.name: each
            for each in sorted(plan.actions, key=lambda action: action.reason == Reason.POOL_ROLLED)
            if _is_of_pool(each) and each.reason in CHANGES
        }

    def blocked_for(self, deployment: str) -> Blocked | None:
        """The first that is about a pool's MachineDeployment."""
        return self._by_deployment.get(deployment)

    def change_of(self, deployment: str) -> Action | None:
        """What this pass does to a pool, its replacement first: what was observed before it is not how it stands."""
        return self._changes.get(deployment)

    def first(self, reasons: Iterable[Reason]) -> Blocked | None:
        wanted = frozenset(reasons)
        return next((each for each in self.blocked if each.reason in wanted), None)

    @property
    def errors(self) -> list[ActionResult]:
        """Writes that failed, but for evictions, which are told of where the drain is."""
        return [each for each in self.failures if each.action.reason != Reason.POD_EVICTED]


def _waits_by_itself(blocked: Blocked) -> bool:
    """What a person holds comes first: all else waits for that, and says that it goes on."""
    return blocked.reason != EngineReason.NEEDS_APPROVAL


def _is_of_pool(about: Blocked | Action) -> bool:
    return about.object.kind == "MachineDeployment"


def status(snapshot: PoolsSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    account = Account(snapshot, plan, outcome)
    if account.is_going or snapshot.workload.is_pending:
        return ()
    after = wire(_status_of(account, now))
    if after == wire(snapshot.cluster.status):
        return ()
    return [StatusWrite(object=cluster_ref(snapshot), status=after)]


def _status_of(account: Account, now: datetime) -> LatticeClusterStatus:
    snapshot = account.snapshot
    lc, management = snapshot.cluster, snapshot.management
    pools = _pool_statuses(account)
    control_plane = management.control_plane
    phase, message = phase_of(snapshot, account.blocked)
    return LatticeClusterStatus(
        observed_generation=lc.metadata.generation,
        phase=phase.value,
        message=message,
        version=str(((control_plane or {}).get("status") or {}).get("version") or ""),
        ready_control_plane=counters(control_plane).ready if control_plane else 0,
        ready_workers=sum(pool.ready for pool in pools.values()),
        workers=total_workers(lc.spec.nodes),
        pivoted=is_pivoted(snapshot),
        worker_pools=pools,
        conditions=_conditions(account, phase, now),
    )


# pools


def pool_statuses(snapshot: PoolsSnapshot, plan: Plan, outcome: Outcome) -> dict[str, WorkerPoolStatus]:
    """How each pool is after a pass, those that go included, by id."""
    return _pool_statuses(Account(snapshot, plan, outcome))


def _pool_statuses(account: Account) -> dict[str, WorkerPoolStatus]:
    pools = {pool.id: _pool_status(account, pool) for pool in account.pools}
    return dict(sorted((pools | _leaving(account, set(pools))).items()))


def _pool_status(account: Account, pool: Pool) -> WorkerPoolStatus:
    snapshot, deployment, spec = account.snapshot, pool.deployment, pool.spec
    blocked = account.blocked_for(pool.belonging.name)
    if deployment is None:
        message = text(blocked.reason, blocked.facts) if blocked else ""
        phase = PoolPhase.BLOCKED if blocked else PoolPhase.PENDING
        return WorkerPoolStatus(desired=spec.replicas, phase=phase.value, message=message)
    known = _counted(snapshot, deployment)
    phase, message = _pool_phase(account, pool, deployment, blocked)
    return WorkerPoolStatus(
        desired=replicas(deployment) if is_autoscaled(snapshot.cluster, spec) else spec.replicas,
        phase=phase.value,
        message=message,
        **known,
    )


def _counted(snapshot: PoolsSnapshot, deployment: Object) -> Object:
    """What the MachineDeployment says: trusted only where it speaks of its present spec, else as last told."""
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
        return PoolPhase.BLOCKED, text(blocked.reason, blocked.facts)
    if is_paused(deployment) or is_paused(management.cluster):
        return PoolPhase.PAUSED, ""
    if change := account.change_of(pool.belonging.name):
        phase = PoolPhase.ROLLING if change.reason == Reason.POOL_ROLLED else PoolPhase.SCALING
        return phase, text(change.reason, change.facts)
    counted = counters(deployment)
    facts: Object = {
        "pool": pool.id,
        "desired": replicas(deployment),
        "available": counted.available,
        "upToDate": counted.up_to_date,
    }
    if (counted.is_current and counted.up_to_date < counted.replicas) or has_outdated(management, deployment):
        return PoolPhase.ROLLING, text(Reason.ROLLING, facts)
    if not is_settled(deployment):
        return PoolPhase.SCALING, text(Reason.SCALING, facts)
    return PoolPhase.READY, ""


def _leaving(account: Account, wanted: set[str]) -> dict[str, WorkerPoolStatus]:
    """Pools that are not wanted any more, for as long as they are there."""
    snapshot = account.snapshot
    found: dict[str, WorkerPoolStatus] = {}
    for name, deployment in sorted(snapshot.management.deployments.items()):
        pool = pool_of(snapshot.cluster.name, deployment)
        if not pool or pool in wanted:
            continue
        blocked = account.blocked_for(name)
        phase = PoolPhase.DELETING if is_deleting(deployment) else PoolPhase.DRAINING
        if blocked is not None:
            phase = _LEAVING_PHASES.get(blocked.reason, PoolPhase.BLOCKED)
        found[pool] = WorkerPoolStatus(
            phase=phase.value,
            message=text(blocked.reason, blocked.facts) if blocked else "",
            blocking_pods=_blocking(account, pool, blocked),
            **_counted(snapshot, deployment),
        )
    return found


def _blocking(account: Account, pool: str, blocked: Blocked | None) -> tuple[BlockingPod, ...]:
    """The pods that a drain waits for; of those whose eviction was refused, with what the API server said."""
    waiting = blocked.facts.get("blockingPods", ()) if blocked is not None else ()
    found = {each["pod"]: BlockingPod(pod=each["pod"], node=each.get("node", "")) for each in waiting}
    for each in account.evictions:
        facts = each.action.facts
        if facts.get("pool") == pool:
            name = f"{each.action.object.namespace}/{each.action.object.name}"
            found[name] = BlockingPod(pod=name, node=facts.get("node", ""), message=each.message)
    return tuple(pod for _name, pod in sorted(found.items())[:LISTED])


# conditions


def _conditions(account: Account, phase: Phase, now: datetime) -> tuple[Condition, ...]:
    lc = account.snapshot.cluster
    fresh = (
        _ready(account, phase),
        _accepted(account),
        _provisioned(account, phase),
        _drained(account),
        _version_current(account),
    )
    conditions = lc.status.conditions
    for condition in fresh:
        observed = msgspec.structs.replace(condition, observed_generation=lc.metadata.generation)
        conditions = with_condition(conditions, observed, now)
    return conditions


def _condition(kind: str, is_true: bool, reason: str, facts: Object) -> Condition:
    return Condition(type=kind, status="True" if is_true else "False", reason=reason, message=text(reason, facts))


def _true(kind: str, account: Account) -> Condition:
    return _condition(kind, True, Reason.RECONCILED.value, {"cluster": account.snapshot.cluster.name})


def _about(kind: str, blocked: Blocked) -> Condition:
    return _condition(kind, False, blocked.reason, blocked.facts)


def _ready(account: Account, phase: Phase) -> Condition:
    snapshot = account.snapshot
    if account.errors:
        first = account.errors[0]
        return Condition(type=READY, status="False", reason=f"{first.action.reason}Failed", message=_failure(first))
    for blocked in account.blocked:
        if blocked.reason not in LEAVING:
            return _about(READY, blocked)
    if phase is not Phase.READY:
        return _condition(READY, False, Reason.PROVISIONING.value, {"cluster": snapshot.cluster.name})
    control_plane = snapshot.management.control_plane
    if control_plane is not None and not is_settled(control_plane):
        counted = counters(control_plane)
        facts = {"cluster": snapshot.cluster.name, "ready": counted.ready, "desired": replicas(control_plane)}
        return _condition(READY, False, Reason.CONTROL_PLANE_GROWING.value, facts)
    for pool in account.pools:
        status = _pool_status(account, pool)
        if status.phase != PoolPhase.READY:
            return Condition(type=READY, status="False", reason=status.phase or "Pending", message=status.message)
    return _true(READY, account)


def _failure(result: ActionResult) -> str:
    return f"{result.action.object}: {result.message}"


def _accepted(account: Account) -> Condition:
    blocked = account.first(REFUSALS)
    return _about(ACCEPTED, blocked) if blocked else _true(ACCEPTED, account)


def _provisioned(account: Account, phase: Phase) -> Condition:
    if phase is Phase.READY:
        return _true(PROVISIONED, account)
    blocked = account.first((Reason.NOT_PIVOTED, Reason.CONTROL_PLANE_PENDING, *REFUSALS))
    if blocked is not None:
        return _about(PROVISIONED, blocked)
    return _condition(PROVISIONED, False, Reason.PROVISIONING.value, {"cluster": account.snapshot.cluster.name})


def _drained(account: Account) -> Condition:
    blocked = account.first((Reason.DRAIN_TIMEOUT, Reason.WORKLOAD_UNREACHABLE)) or account.first(DRAINS)
    if blocked is None:
        return _true(DRAINED, account)
    condition = _about(DRAINED, blocked)
    refused = [f"{each.action.object}: {each.message}" for each in account.evictions]
    if not refused:
        return condition
    message = f"{condition.message}. {'; '.join(refused[:LISTED])}"
    return Condition(type=DRAINED, status="False", reason=condition.reason, message=message[:32768])


def _version_current(account: Account) -> Condition:
    blocked = account.first(VERSION_STOPS)
    return _about(VERSION_CURRENT, blocked) if blocked else _true(VERSION_CURRENT, account)


# the wire


def wire(status: LatticeClusterStatus) -> Object:
    """As the API server keeps it: the design's fields always, the others where they say something."""
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
    return {**found, **_said(message=status.message, version=status.version)}


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
        **_said(
            nodeClass=pool.node_class,
            phase=pool.phase,
            message=pool.message,
            machineDeployment=pool.machine_deployment,
            version=pool.version,
        ),
    }


def _said(**values: str) -> Object:
    return {name: value for name, value in values.items() if value}
