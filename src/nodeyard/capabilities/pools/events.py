"""What is said about a pass: one event per cluster, reason and pool, never one per node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.pools.messages import text
from nodeyard.capabilities.pools.planning.foundation import cluster_ref
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.status import NOTICES, REFUSALS
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Blocked, ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import Event

NORMAL = "Normal"
WARNING = "Warning"
FAILED = "Failed"
"""Ends the reason of an event about writes that did not succeed: `PoolCreatedFailed`."""

_QUIET = frozenset(
    {
        Reason.CLUSTER_NOTED,
        Reason.FINALIZER_ADDED,
        Reason.FINALIZER_REMOVED,
        Reason.TEMPLATE_CREATED,
        Reason.TEMPLATE_COLLECTED,
        Reason.TEMPLATE_NOTED,
        Reason.REPLICAS_TAKEN_OVER,
        Reason.FIELDS_TAKEN_OVER,
        Reason.NAMESPACE_CREATED,
    }
)
_MANY = {Reason.NODE_CORDONED: "node", Reason.NODE_UNCORDONED: "node", Reason.POD_EVICTED: "pod"}
"""What there are many of in one pass is counted."""
_TOLD: frozenset[str] = REFUSALS | {
    EngineReason.NEEDS_APPROVAL,
    Reason.DRAIN_TIMEOUT,
    Reason.SELF_MANAGED,
    Reason.VERSION_STOPPED,
    Reason.SKEW,
    Reason.CLUSTER_PAUSED,
    Reason.CLUSTER_GONE,
}
_BAD = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def events(snapshot: PoolsSnapshot, plan: Plan, outcome: Outcome) -> Sequence[Event]:
    ref = cluster_ref(snapshot)
    if snapshot.workload.is_pending:
        # The pass after this one says how things stand, and writes down that it has.
        return _of_results(ref, outcome.results)
    return [
        *_of_results(ref, outcome.results),
        *_of_refusals(ref, plan.blocked),
        *_of_notices(ref, snapshot, plan.blocked),
    ]


def _of_results(ref: ObjectRef, results: Iterable[ActionResult]) -> list[Event]:
    told: list[Event] = []
    many: dict[tuple[str, str], int] = {}
    for each in results:
        action = each.action
        if each.result is Result.DONE and action.reason in _MANY:
            key = (action.reason, str(action.facts.get("pool", "")))
            many[key] = many.get(key, 0) + 1
        elif each.result is Result.DONE and action.reason not in _QUIET:
            told.append(Event(ref, NORMAL, action.reason, text(action.reason, action.facts)))
        elif each.result in _BAD and action.reason != Reason.POD_EVICTED:
            told.append(Event(ref, WARNING, f"{action.reason}{FAILED}", f"{action.object}: {each.message}"))
    for (reason, pool), count in many.items():
        told.append(Event(ref, NORMAL, reason, f"{reason}: {counted(count, _MANY[Reason(reason)])} of pool {pool}"))
    return told


def _of_refusals(ref: ObjectRef, blocked: Iterable[Blocked]) -> list[Event]:
    return [
        Event(ref, WARNING, each.reason, text(each.reason, each.facts), is_standing=True)
        for each in blocked
        if each.reason in _TOLD
    ]


def _of_notices(ref: ObjectRef, snapshot: PoolsSnapshot, blocked: Iterable[Blocked]) -> list[Event]:
    """Once per generation: the status of this one has not been written yet."""
    lc = snapshot.cluster
    if lc.status.observed_generation >= lc.metadata.generation:
        return []
    return [
        Event(ref, WARNING, each.reason, text(each.reason, each.facts)) for each in blocked if each.reason in NOTICES
    ]
