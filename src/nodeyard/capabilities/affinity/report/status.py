"""Conditions of all kinds, and the status of ApplicationDefinitions and AffinityClasses.

Conditions come from the outcome of a reconcile: failed writes, refusals, and else the observed state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.affinity.messages.classes import InvalidSelector, NodesMatch, NoNodeMatches, PodsOutside
from nodeyard.capabilities.affinity.messages.definitions import Establishing, Served
from nodeyard.capabilities.affinity.planning.classes import NAMED_USERS, selector_errors
from nodeyard.capabilities.affinity.planning.definitions import CRD_KIND, crd_name, is_ours
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import ClassSnapshot, DefinitionSnapshot
from nodeyard.capabilities.affinity.types import (
    AffinityClassStatus,
    ApplicationDefinitionStatus,
    ConditionType,
    ZoneCount,
)
from nodeyard.kube.conditions import FALSE, TRUE, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked, Plan
from nodeyard.runtime.capability import Event, StatusWrite

_BAD: Final = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def make_condition(kind: str, status: str, message: Message) -> Condition:
    return Condition(type=kind, status=status, reason=message.reason, message=message.text())


def failure_condition(kind: str, outcome: Outcome) -> Condition | None:
    """Return the first failed write as a condition of this type."""
    for each in outcome.results:
        if each.result in _BAD:
            message = f"{each.action.object}: {each.message}"
            return Condition(type=kind, status=FALSE, reason=f"{each.action.reason}Failed", message=message)
    return None


def refusal_condition(kind: str, blocked: Sequence[Blocked], notices: frozenset[str]) -> Condition | None:
    """Return the first refusal that is not a notice as a condition of this type."""
    found = next((each for each in blocked if each.reason not in notices), None)
    return None if found is None else make_condition(kind, FALSE, found.facts)


def set_conditions(
    present: tuple[Condition, ...], wanted: Iterable[Condition], generation: int, now: datetime
) -> tuple[Condition, ...]:
    for condition in wanted:
        observed = msgspec.structs.replace(condition, observed_generation=generation)
        present = with_condition(present, observed, now)
    return present


# ApplicationDefinitions


_DEFINITION_NOTICES: Final = frozenset(
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
    conditions = (_definition_ready(plan.blocked, outcome, served), served)
    after = ApplicationDefinitionStatus(
        observed_generation=generation,
        applications=snapshot.applications,
        conditions=set_conditions(before.conditions, conditions, generation, now),
    )
    if _definition_wire(after) == _definition_wire(before):
        return ()
    return [StatusWrite(object=definition.ref, status=_definition_wire(after))]


def _definition_wire(status: ApplicationDefinitionStatus) -> Object:
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
    notice = next((each for each in blocked if each.reason in _DEFINITION_NOTICES), None)
    if notice is not None and notice.reason == Reason.SERVED_BY_API_SERVICE:
        return make_condition(kind, TRUE, notice.facts)
    is_taken = notice is not None and notice.reason == Reason.CRD_NOT_MANAGED
    if crd is None or not (is_taken or is_ours(crd, definition)):
        establishing = Establishing(crd=crd_name(definition))
        return refusal_condition(kind, blocked, _DEFINITION_NOTICES) or make_condition(kind, FALSE, establishing)
    conditions = {each["type"]: each for each in (crd.get("status") or {}).get("conditions") or ()}
    if conditions.get("Established", {}).get("status") != TRUE:
        names_fault = conditions.get("NamesAccepted", {})
        error = names_fault.get("message", "") if names_fault.get("status") == FALSE else ""
        return make_condition(kind, FALSE, Establishing(crd=crd_name(definition), error=error))
    return make_condition(kind, TRUE, notice.facts if notice else Served(kind=definition.kind))


def _definition_ready(blocked: Sequence[Blocked], outcome: Outcome, served: Condition) -> Condition:
    kind = ConditionType.READY.value
    found = failure_condition(kind, outcome) or refusal_condition(kind, blocked, _DEFINITION_NOTICES)
    return found or msgspec.structs.replace(served, type=kind)


# AffinityClasses


WARNING: Final = "Warning"
_NAMED_PODS: Final = 10
_CLASS_NOTICES: Final = frozenset({Reason.SERVED_BY_API_SERVICE.value})
"""Refusals that do not make a class unready."""


def status_class(snapshot: ClassSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    affinity_class = snapshot.affinity_class
    if affinity_class.is_deleting and any(each.reason == Reason.FINALIZER_REMOVED for each in plan.actions):
        return ()
    before, after = affinity_class.status, _class_status(snapshot, plan.blocked, outcome, now)
    if _class_wire(after) == _class_wire(before):
        return ()
    return [StatusWrite(object=affinity_class.ref, status=_class_wire(after))]


def _class_wire(status: AffinityClassStatus) -> Object:
    return {
        **msgspec.to_builtins(status),
        "zones": [msgspec.to_builtins(each) for each in status.zones],
        "inUseBy": [msgspec.to_builtins(each) for each in status.in_use_by],
        "conditions": to_wire(status.conditions),
    }


def _class_status(
    snapshot: ClassSnapshot, blocked: Sequence[Blocked], outcome: Outcome, now: datetime
) -> AffinityClassStatus:
    affinity_class = snapshot.affinity_class
    generation = affinity_class.metadata.generation
    nodes_match = _nodes_match(snapshot)
    conditions = [_class_ready(snapshot, blocked, outcome, nodes_match), nodes_match]
    present = tuple(each for each in affinity_class.status.conditions if each.type != ConditionType.RELEASES_ONLY)
    if notice := next((each for each in blocked if each.reason in _CLASS_NOTICES), None):
        present = affinity_class.status.conditions
        conditions.append(make_condition(ConditionType.RELEASES_ONLY.value, TRUE, notice.facts))
    return AffinityClassStatus(
        observed_generation=generation,
        nodes=sum(snapshot.zones.values()),
        zones=tuple(ZoneCount(zone=zone, nodes=number) for zone, number in sorted(snapshot.zones.items())),
        users=len(snapshot.users),
        in_use_by=tuple(snapshot.users[:NAMED_USERS]),
        violators=snapshot.violator_count,
        conditions=set_conditions(present, conditions, generation, now),
    )


def _nodes_match(snapshot: ClassSnapshot) -> Condition:
    kind = ConditionType.NODES_MATCH.value
    if not any(snapshot.zones.values()):
        return make_condition(kind, FALSE, NoNodeMatches())
    return make_condition(kind, TRUE, NodesMatch(zones=dict(sorted(snapshot.zones.items()))))


def _class_ready(
    snapshot: ClassSnapshot, blocked: Sequence[Blocked], outcome: Outcome, nodes_match: Condition
) -> Condition:
    kind = ConditionType.READY.value
    if errors := selector_errors(snapshot.affinity_class.spec):
        return make_condition(kind, FALSE, InvalidSelector(errors=errors))
    found = failure_condition(kind, outcome) or refusal_condition(kind, blocked, _CLASS_NOTICES)
    return found or msgspec.structs.replace(nodes_match, type=kind)


def class_events(snapshot: ClassSnapshot) -> Sequence[Event]:
    """Return warnings about pods outside the class, and a used class without nodes."""
    name, ref = snapshot.affinity_class.name, snapshot.affinity_class.ref
    messages: list[Message] = []
    if snapshot.violator_count:
        pods = snapshot.violators[:_NAMED_PODS]
        messages.append(PodsOutside(affinity_class=name, pods=pods, count=snapshot.violator_count))
    if snapshot.users and not any(snapshot.zones.values()):
        messages.append(NoNodeMatches())
    return [Event(ref, WARNING, each.reason, each.text(), is_standing=True) for each in messages]
