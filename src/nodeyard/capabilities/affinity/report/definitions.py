"""Status of an ApplicationDefinition: is its kind served, and how many applications it has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.affinity.messages.definitions import Establishing, Served
from nodeyard.capabilities.affinity.planning.definitions import CRD_KIND, crd_name, is_ours
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.conditions import (
    failure_condition,
    make_condition,
    refusal_condition,
    set_conditions,
)
from nodeyard.capabilities.affinity.snapshot import DefinitionSnapshot
from nodeyard.capabilities.affinity.types import ApplicationDefinitionStatus, ConditionType
from nodeyard.kube.conditions import FALSE, TRUE, to_wire
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import Blocked, Plan
from nodeyard.runtime.capability import StatusWrite

_NOTICES: Final = frozenset(
    each.value for each in (Reason.SERVED_BY_API_SERVICE, Reason.SCHEMA_SIMPLIFIED, Reason.CRD_NOT_MANAGED)
)
"""Refusals that do not make a definition unready: the kind is served."""


def status_definition(
    snapshot: DefinitionSnapshot, plan: Plan, outcome: Outcome, now: datetime
) -> Sequence[StatusWrite]:
    definition = snapshot.definition
    if any(each.reason == Reason.FINALIZER_REMOVED for each in plan.actions):
        return ()
    before = definition.status
    generation = definition.metadata.generation
    served = _served(snapshot, plan.blocked, _crd_after(snapshot, outcome))
    conditions = (_ready(plan.blocked, outcome, served), served)
    after = ApplicationDefinitionStatus(
        observed_generation=generation,
        applications=snapshot.applications,
        conditions=set_conditions(before.conditions, conditions, generation, now),
    )
    if wire(after) == wire(before):
        return ()
    return [StatusWrite(object=definition.ref, status=wire(after))]


def wire(status: ApplicationDefinitionStatus) -> Object:
    return {
        "observedGeneration": status.observed_generation,
        "applications": status.applications,
        "conditions": to_wire(status.conditions),
    }


def _crd_after(snapshot: DefinitionSnapshot, outcome: Outcome) -> Object | None:
    crd = snapshot.crd
    for each in outcome.results:
        if each.action.object.kind == CRD_KIND and each.result is Result.DONE:
            crd = each.answer if isinstance(each.answer, dict) else None
    return crd


def _served(snapshot: DefinitionSnapshot, blocked: Sequence[Blocked], crd: Object | None) -> Condition:
    kind, definition = ConditionType.SERVED.value, snapshot.definition
    notice = next((each for each in blocked if each.reason in _NOTICES), None)
    if notice is not None and notice.reason == Reason.SERVED_BY_API_SERVICE:
        return make_condition(kind, TRUE, notice.facts)
    is_taken = notice is not None and notice.reason == Reason.CRD_NOT_MANAGED
    if crd is None or not (is_taken or is_ours(crd, definition)):
        establishing = Establishing(crd=crd_name(definition))
        return refusal_condition(kind, blocked, _NOTICES) or make_condition(kind, FALSE, establishing)
    conditions = {each["type"]: each for each in (crd.get("status") or {}).get("conditions") or ()}
    if conditions.get("Established", {}).get("status") != TRUE:
        names_fault = conditions.get("NamesAccepted", {})
        error = names_fault.get("message", "") if names_fault.get("status") == FALSE else ""
        return make_condition(kind, FALSE, Establishing(crd=crd_name(definition), error=error))
    return make_condition(kind, TRUE, notice.facts if notice else Served(kind=definition.kind))


def _ready(blocked: Sequence[Blocked], outcome: Outcome, served: Condition) -> Condition:
    kind = ConditionType.READY.value
    found = failure_condition(kind, outcome) or refusal_condition(kind, blocked, _NOTICES)
    return found or msgspec.structs.replace(served, type=kind)
