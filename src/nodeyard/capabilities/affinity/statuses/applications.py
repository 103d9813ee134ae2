"""What an application says of itself: whether its release is ready, which class it has and why, and what that means.

The class in effect is the one its release carries, which is not the one it wants while that is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.choice import choose, is_released, release_condition
from nodeyard.capabilities.affinity.planning.placement import enforcement_of, is_exempt
from nodeyard.capabilities.affinity.planning.previous import previous_classes, shown
from nodeyard.capabilities.affinity.planning.releases import application_ref, facts_of
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot
from nodeyard.capabilities.affinity.statuses.verdicts import failure, refusal, said, with_all
from nodeyard.capabilities.affinity.types import ApplicationStatus, ConditionType, Enforcement
from nodeyard.kube.conditions import FALSE, TRUE, UNKNOWN, to_wire
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.kube.patch import is_same
from nodeyard.plan.model import Blocked, Plan
from nodeyard.runtime.capability import StatusWrite

_NOTICES: Final = frozenset({Reason.CLASS_WITHDRAWN.value})
"""What does not keep an application from being ready."""
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
    return [] if is_same(before, after) else [StatusWrite(object=application_ref(application), status=after)]


def wire(status: ApplicationStatus) -> Object:
    """Without what is empty, but for the conditions."""
    found: Object = msgspec.to_builtins(msgspec.structs.replace(status, conditions=()))
    return {**{name: value for name, value in found.items() if value}, "conditions": to_wire(status.conditions)}


def _release_after(snapshot: ApplicationSnapshot, outcome: Outcome) -> Object | None:
    """The release as this pass leaves it, where it is the application's."""
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
    labels = {} if release is None else release["metadata"].get("labels") or {}
    name = labels.get(names.AFFINITY_CLASS, "")
    affinity_class = snapshot.classes.get(name)
    generation = metadata.get("generation", 0)
    conditions = [
        _ready(snapshot, blocked, outcome, release),
        *_copied(release),
        _resolved(snapshot),
        _enforced(snapshot, release),
    ]
    return ApplicationStatus(
        observed_generation=generation,
        version=str(((release or {}).get("status") or {}).get("lastAttemptedRevision") or ""),
        release="" if release is None else release["metadata"]["name"],
        affinity_class=name,
        previous_affinity_class=shown(previous_classes(labels)),
        node_selector={} if affinity_class is None else affinity_class.spec.node_selector,
        conditions=with_all(_present(snapshot.application), conditions, generation, now),
    )


def _present(application: Object) -> tuple[Condition, ...]:
    """The conditions that are there, others' too; none where they cannot be read."""
    try:
        return msgspec.convert((application.get("status") or {}).get("conditions") or (), tuple[Condition, ...])
    except msgspec.ValidationError:
        return ()


# conditions


def _ready(
    snapshot: ApplicationSnapshot, blocked: Sequence[Blocked], outcome: Outcome, release: Object | None
) -> Condition:
    kind = ConditionType.READY.value
    found = failure(kind, outcome) or refusal(kind, blocked, _NOTICES)
    if found is not None:
        return found
    theirs = release_condition(release, kind)
    if theirs is None:
        return said(kind, UNKNOWN, Reason.RELEASE_PENDING, facts_of(snapshot))
    return _copy(theirs)


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
    is_fine = not choice.is_blocking and choice.reason is not Reason.CLASS_WITHDRAWN
    return said(ConditionType.RESOLVED.value, TRUE if is_fine else FALSE, choice.reason, choice.facts)


def _enforced(snapshot: ApplicationSnapshot, release: Object | None) -> Condition:
    kind = ConditionType.ENFORCED.value
    labels = {} if release is None else release["metadata"].get("labels") or {}
    name = labels.get(names.AFFINITY_CLASS, "")
    facts = facts_of(snapshot, **{"class": name})
    if release is None:
        return said(kind, FALSE, Reason.RELEASE_PENDING, facts)
    if not name:
        return said(kind, FALSE, Reason.CLASS_NONE, choose(snapshot).facts)
    affinity_class = snapshot.classes.get(name)
    if affinity_class is None:
        return said(kind, FALSE, Reason.CLASS_MISSING, facts)
    enforcement = enforcement_of(affinity_class, snapshot.namespace_labels)
    if enforcement is not Enforcement.DENY:
        return said(kind, FALSE, Reason.NOT_ENFORCED, {**facts, "enforcement": enforcement.value})
    if is_exempt(facts["namespace"], snapshot.namespace_labels):
        return said(kind, FALSE, Reason.EXEMPT, facts)
    if not snapshot.is_asked:
        return said(kind, FALSE, Reason.NOT_ASKED, facts)
    if previous := previous_classes(labels):
        return said(kind, TRUE, Reason.SWITCHING, {**facts, "previous": shown(previous)})
    return said(kind, TRUE, Reason.ENFORCED, facts)
