"""Status of an application: readiness of its release, its class with the source, and the enforcement.

The effective class is the recorded one. It differs from spec.affinityClass while that is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.applications import (
    ClassMissing,
    Enforced,
    NoClass,
    NotEnforced,
    ReleasePending,
    SwitchingClass,
    WebhooksNotRegistered,
)
from nodeyard.capabilities.affinity.messages.pods import NamespaceExempt
from nodeyard.capabilities.affinity.planning.choice import choose, is_released, release_condition
from nodeyard.capabilities.affinity.planning.class_record import format_previous, stored_record
from nodeyard.capabilities.affinity.planning.placement import enforcement_of, is_exempt
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.status import (
    failure_condition,
    make_condition,
    refusal_condition,
    set_conditions,
)
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot
from nodeyard.capabilities.affinity.types import ApplicationStatus, ConditionType, Enforcement
from nodeyard.kube.conditions import FALSE, TRUE, UNKNOWN, to_wire
from nodeyard.kube.json import Object, json_equal
from nodeyard.kube.objects import Condition
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked, Plan
from nodeyard.runtime.capability import StatusWrite

_NOTICES: Final = frozenset({Reason.AFFINITY_CLASS_WITHDRAWN.value})
"""Refusals that do not make an application unready."""
_OURS: Final = frozenset(each.encode_name for each in msgspec.structs.fields(ApplicationStatus))


def status_application(
    snapshot: ApplicationSnapshot, plan: Plan, outcome: Outcome, now: datetime
) -> Sequence[StatusWrite]:
    application = snapshot.application
    if application["metadata"].get("deletionTimestamp"):
        return ()
    before: Object = application.get("status") or {}
    release = _release_after(snapshot, outcome)
    found = _status_of(snapshot, plan.blocked, outcome, release, now)
    theirs = {name: value for name, value in before.items() if name not in _OURS}
    after = {**theirs, **wire(found)}
    return [] if json_equal(before, after) else [StatusWrite(object=snapshot.ref, status=after)]


def wire(status: ApplicationStatus) -> Object:
    """Return the status without empty fields, except conditions."""
    found: Object = msgspec.to_builtins(msgspec.structs.replace(status, conditions=()))
    return {**{name: value for name, value in found.items() if value}, "conditions": to_wire(status.conditions)}


def _release_after(snapshot: ApplicationSnapshot, outcome: Outcome) -> Object | None:
    """Return the release as this reconcile leaves it, if it belongs to the application."""
    release = snapshot.release
    for each in outcome.results:
        is_answer = each.action.object.kind == names.RELEASE_KIND and isinstance(each.answer, dict)
        if is_answer and each.result is Result.DONE:
            release = each.answer
    return release if release is not None and is_released(snapshot.application, release) else None


def _status_of(
    snapshot: ApplicationSnapshot,
    blocked: Sequence[Blocked],
    outcome: Outcome,
    release: Object | None,
    now: datetime,
) -> ApplicationStatus:
    metadata = snapshot.application["metadata"]
    name, previous = _in_effect(snapshot, outcome, release)
    affinity_class = snapshot.classes.get(name)
    generation = metadata.get("generation", 0)
    conditions = [
        _ready(snapshot, blocked, outcome, release),
        *_copied(release),
        _resolved(snapshot),
        _enforced(snapshot, release, name, previous),
    ]
    return ApplicationStatus(
        observed_generation=generation,
        version=str(((release or {}).get("status") or {}).get("lastAttemptedRevision") or ""),
        release="" if release is None else release["metadata"]["name"],
        affinity_class=name,
        previous_affinity_class=format_previous(previous),
        node_selector={} if affinity_class is None else affinity_class.spec.node_selector,
        conditions=set_conditions(_present(snapshot.application), conditions, generation, now),
    )


def _in_effect(snapshot: ApplicationSnapshot, outcome: Outcome, release: Object | None) -> tuple[str, tuple[str, ...]]:
    """Return the class and previous classes as recorded at the end of this reconcile."""
    if release is None:
        return "", ()
    record = stored_record(snapshot.application)
    for each in outcome.results:
        is_answer = each.action.reason == Reason.CLASS_RECORDED and isinstance(each.answer, dict)
        if is_answer and each.result is Result.DONE:
            record = stored_record(each.answer) or record
    if record is None:
        return (release["metadata"].get("labels") or {}).get(names.AFFINITY_CLASS, ""), ()
    return record.affinity_class, record.previous


def _present(application: Object) -> tuple[Condition, ...]:
    """Return the existing conditions, including foreign ones; empty if they cannot be decoded."""
    try:
        return msgspec.convert((application.get("status") or {}).get("conditions") or (), tuple[Condition, ...])
    except msgspec.ValidationError:
        return ()


# conditions


def _ready(
    snapshot: ApplicationSnapshot, blocked: Sequence[Blocked], outcome: Outcome, release: Object | None
) -> Condition:
    kind = ConditionType.READY.value
    found = failure_condition(kind, outcome) or refusal_condition(kind, blocked, _NOTICES)
    if found is not None:
        return found
    theirs = release_condition(release, kind)
    if theirs is None:
        return make_condition(kind, UNKNOWN, _pending(snapshot))
    return _copy(theirs)


def _pending(snapshot: ApplicationSnapshot) -> ReleasePending:
    return ReleasePending(object=snapshot.ref, release=snapshot.release_name)


def _copied(release: Object | None) -> Iterator[Condition]:
    theirs = release_condition(release, ConditionType.RELEASED.value)
    if theirs is not None:
        yield _copy(theirs)


def _copy(theirs: Object) -> Condition:
    return Condition(
        type=theirs["type"],
        status=theirs.get("status", UNKNOWN),
        reason=theirs.get("reason") or Reason.RELEASE_PENDING.value,
        message=theirs.get("message", ""),
    )


def _resolved(snapshot: ApplicationSnapshot) -> Condition:
    choice = choose(snapshot)
    return make_condition(ConditionType.RESOLVED.value, FALSE if choice.is_refused else TRUE, choice.message)


def _enforced(snapshot: ApplicationSnapshot, release: Object | None, name: str, previous: tuple[str, ...]) -> Condition:
    kind, obstacle = ConditionType.ENFORCED.value, _not_enforced(snapshot, release, name)
    if obstacle is not None:
        return make_condition(kind, FALSE, obstacle)
    if previous:
        before = format_previous(previous)
        return make_condition(kind, TRUE, SwitchingClass(object=snapshot.ref, affinity_class=name, previous=before))
    return make_condition(kind, TRUE, Enforced(affinity_class=name))


def _not_enforced(snapshot: ApplicationSnapshot, release: Object | None, name: str) -> Message | None:
    """Return why pods outside the class would be admitted; None if they are denied."""
    ref = snapshot.ref
    if release is None:
        return _pending(snapshot)
    if not name:
        message = choose(snapshot).message
        return message if isinstance(message, NoClass) else NoClass(object=ref, why="no default")
    affinity_class = snapshot.classes.get(name)
    if affinity_class is None:
        return ClassMissing(object=ref, affinity_class=name)
    enforcement = enforcement_of(affinity_class, snapshot.namespace_labels)
    if enforcement is not Enforcement.DENY:
        return NotEnforced(affinity_class=name, enforcement=enforcement.value)
    if is_exempt(ref.namespace, snapshot.namespace_labels):
        return NamespaceExempt(namespace=ref.namespace)
    return None if snapshot.is_webhook_registered else WebhooksNotRegistered()
