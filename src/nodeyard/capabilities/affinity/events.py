"""What is said about a pass, on the object it is about: what was done, what failed, what stands in the way.

A tenant's namespace and values, an application's release and a definition's CRD are told on the tenant, the application
and the definition. What pods are refused for is told at admission (`reviews.happenings`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collecting import Snapshot
from nodeyard.capabilities.affinity.messages import text
from nodeyard.capabilities.affinity.planning.classes import class_ref
from nodeyard.capabilities.affinity.planning.definitions import definition_ref
from nodeyard.capabilities.affinity.planning.naming import tenant_ref
from nodeyard.capabilities.affinity.planning.releases import application_ref
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    TenantsSnapshot,
)
from nodeyard.capabilities.affinity.statuses.classes import class_events
from nodeyard.plan.model import ObjectRef, Plan
from nodeyard.runtime.capability import Event

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
FAILED: Final = "Failed"
"""Ends the reason of an event about a write that did not succeed."""
_QUIET: Final = frozenset({Reason.FINALIZER_ADDED.value, Reason.FINALIZER_REMOVED.value})
_CALM: Final = frozenset(
    each.value
    for each in (
        Reason.DELETING,
        Reason.PAUSED,
        Reason.RELEASE_PENDING,
        Reason.NAMESPACE_GOING,
        Reason.SERVED_ELSEWHERE,
        Reason.DEFINITION_CLOSED,
    )
)
"""What is refused and nobody's fault."""
_BAD: Final = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def events(snapshot: Snapshot, plan: Plan, outcome: Outcome) -> Sequence[Event]:
    told = [event for each in outcome.results for event in _of_result(snapshot, each)]
    for blocked in plan.blocked:
        kind = NORMAL if blocked.reason in _CALM else WARNING
        told.append(Event(blocked.object, kind, blocked.reason, text(blocked.reason, blocked.facts), is_standing=True))
    if isinstance(snapshot, ClassSnapshot):
        told.extend(class_events(snapshot))
    return told


def _of_result(snapshot: Snapshot, result: ActionResult) -> Iterator[Event]:
    action = result.action
    ref = _subject(snapshot, action.object)
    if ref is None:
        return
    if result.result is Result.DONE and action.reason not in _QUIET:
        yield Event(ref, NORMAL, action.reason, text(action.reason, action.facts))
    elif result.result in _BAD:
        yield Event(ref, WARNING, f"{action.reason}{FAILED}", f"{action.object}: {result.message}")


def _subject(snapshot: Snapshot, written: ObjectRef) -> ObjectRef | None:
    """Whom a write is for."""
    match snapshot:
        case ApplicationSnapshot():
            return application_ref(snapshot.application)
        case DefinitionSnapshot():
            return definition_ref(snapshot.definition)
        case ClassSnapshot():
            return class_ref(snapshot.affinity_class)
        case TenantsSnapshot():
            return _tenant_of(snapshot, written)
    return None


def _tenant_of(snapshot: TenantsSnapshot, written: ObjectRef) -> ObjectRef | None:
    if written.kind == names.TENANT_KIND:
        return written
    own = written.namespace or written.name
    return next((tenant_ref(each) for each in snapshot.tenants if each.own_namespace == own), None)
