"""Events about a reconcile, on the object that it is for: actions, failures and refusals.

Actions on a Namespace or Secret are reported on the tenant, on a HelmRelease on the application, on a CRD on the
definition. Admission reports denied pods (`reviews.pods`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.status import class_events
from nodeyard.capabilities.affinity.snapshot import (
    ApplicationSnapshot,
    ClassSnapshot,
    DefinitionSnapshot,
    Snapshot,
    TenantsSnapshot,
)
from nodeyard.plan.model import ObjectRef, Plan
from nodeyard.runtime.capability import Event

NORMAL: Final = "Normal"
WARNING: Final = "Warning"
FAILED: Final = "Failed"
"""Ends the reason of an event about a write that did not succeed."""
_UNREPORTED: Final = frozenset(
    each.value for each in (Reason.FINALIZER_ADDED, Reason.FINALIZER_REMOVED, Reason.CLASS_RECORDED)
)
_EXPECTED: Final = frozenset(
    each.value
    for each in (
        Reason.DELETING,
        Reason.PAUSED,
        Reason.RELEASE_PENDING,
        Reason.NAMESPACE_TERMINATING,
        Reason.SERVED_BY_API_SERVICE,
        Reason.DEFINITION_CLOSED,
    )
)
"""Refusals that need no user action."""
_BAD: Final = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def events(snapshot: Snapshot, plan: Plan, outcome: Outcome) -> Sequence[Event]:
    found = [event for each in outcome.results for event in _of_result(snapshot, each)]
    for blocked in plan.blocked:
        kind = NORMAL if blocked.reason in _EXPECTED else WARNING
        found.append(Event(blocked.object, kind, blocked.reason, blocked.facts.text(), is_standing=True))
    if isinstance(snapshot, ClassSnapshot):
        found.extend(class_events(snapshot))
    return found


def _of_result(snapshot: Snapshot, result: ActionResult) -> Iterator[Event]:
    action = result.action
    ref = _subject(snapshot, action.object)
    if ref is None:
        return
    if result.result is Result.DONE and action.reason not in _UNREPORTED:
        yield Event(ref, NORMAL, action.reason, action.facts.past_text())
    elif result.result in _BAD:
        yield Event(ref, WARNING, f"{action.reason}{FAILED}", f"{action.object}: {result.message}")


def _subject(snapshot: Snapshot, written: ObjectRef) -> ObjectRef | None:
    """Return the object that a write is for."""
    match snapshot:
        case ApplicationSnapshot():
            return snapshot.ref
        case DefinitionSnapshot():
            return snapshot.definition.ref
        case ClassSnapshot():
            return snapshot.affinity_class.ref
        case TenantsSnapshot():
            return _tenant_of(snapshot, written)
    return None


def _tenant_of(snapshot: TenantsSnapshot, written: ObjectRef) -> ObjectRef | None:
    if written.kind == names.TENANT_KIND:
        return written
    own = written.namespace or written.name
    return next((each.ref for each in snapshot.tenants if each.own_namespace == own), None)
