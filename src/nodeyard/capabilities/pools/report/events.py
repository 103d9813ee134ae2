"""Events of one reconcile: one event per cluster, reason and pool, never one per node or pod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.pools.messages.base import PoolMessage
from nodeyard.capabilities.pools.planning.cluster_objects import cluster_ref
from nodeyard.capabilities.pools.reasons import REJECTIONS, WARNINGS, Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Blocked, ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import Event

NORMAL = "Normal"
WARNING = "Warning"
FAILED = "Failed"
"""Suffix of the reason of an event about a failed write: `PoolCreatedFailed`."""

_WITHOUT_EVENT = frozenset(
    {
        Reason.CLUSTER_ANNOTATED,
        Reason.FINALIZER_ADDED,
        Reason.FINALIZER_REMOVED,
        Reason.TEMPLATE_CREATED,
        Reason.TEMPLATE_DELETED,
        Reason.TEMPLATE_ANNOTATED,
        Reason.REPLICAS_TAKEN_OVER,
        Reason.FIELDS_TAKEN_OVER,
        Reason.NAMESPACE_CREATED,
    }
)
_AGGREGATED: dict[str, tuple[str, str]] = {
    Reason.NODE_CORDONED: ("Cordoned", "node"),
    Reason.NODE_UNCORDONED: ("Uncordoned", "node"),
    Reason.POD_EVICTED: ("Evicted", "pod"),
}
"""Actions of which one reconcile has many: one event counts them."""
_WITH_EVENT: frozenset[str] = REJECTIONS | {
    EngineReason.NEEDS_APPROVAL,
    Reason.DRAIN_TIMEOUT,
    Reason.SELF_MANAGED,
    Reason.VERSION_STOPPED,
    Reason.VERSION_SKEW,
    Reason.CLUSTER_PAUSED,
    Reason.CLUSTER_GONE,
}
_BAD = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def events(snapshot: PoolsSnapshot, plan: Plan, outcome: Outcome) -> Sequence[Event]:
    ref = cluster_ref(snapshot)
    if snapshot.workload.is_pending:
        # The next reconcile reports the state, once the workload cluster's identity is known.
        return _result_events(ref, outcome.results)
    return [
        *_result_events(ref, outcome.results),
        *_blocked_events(ref, plan.blocked),
        *_warning_events(ref, snapshot, plan.blocked),
    ]


def _result_events(ref: ObjectRef, results: Iterable[ActionResult]) -> list[Event]:
    found: list[Event] = []
    counts: dict[tuple[str, str], int] = {}
    for each in results:
        action = each.action
        message = action.facts
        if each.result is Result.DONE and action.reason in _AGGREGATED and isinstance(message, PoolMessage):
            key = (action.reason, message.label)
            counts[key] = counts.get(key, 0) + 1
        elif each.result is Result.DONE and action.reason not in _WITHOUT_EVENT:
            found.append(Event(ref, NORMAL, action.reason, action.facts.past_text()))
        elif each.result in _BAD and action.reason != Reason.POD_EVICTED:
            found.append(Event(ref, WARNING, f"{action.reason}{FAILED}", f"{action.object}: {each.message}"))
    for (reason, pool), count in counts.items():
        verb, noun = _AGGREGATED[reason]
        found.append(Event(ref, NORMAL, reason, f"{verb} {counted(count, noun)} of pool {pool}"))
    return found


def _blocked_events(ref: ObjectRef, blocked: Iterable[Blocked]) -> list[Event]:
    return [
        Event(ref, WARNING, each.reason, each.facts.text(), is_standing=True)
        for each in blocked
        if each.reason in _WITH_EVENT
    ]


def _warning_events(ref: ObjectRef, snapshot: PoolsSnapshot, blocked: Iterable[Blocked]) -> list[Event]:
    """Build warning events, once per generation: only before the status of this generation is written."""
    lc = snapshot.cluster
    if lc.status.observed_generation >= lc.metadata.generation:
        return []
    return [Event(ref, WARNING, each.reason, each.facts.text()) for each in blocked if each.reason in WARNINGS]
