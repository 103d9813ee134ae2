"""Status and events of an AffinityClass: its nodes, its users and the pods outside it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.affinity.messages.placement import placement_text
from nodeyard.capabilities.affinity.planning.classes import NAMED_USERS, class_ref, selector_errors
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.conditions import (
    failure_condition,
    make_condition,
    refusal_condition,
    set_conditions,
)
from nodeyard.capabilities.affinity.snapshot import ClassSnapshot
from nodeyard.capabilities.affinity.types import AffinityClass, AffinityClassStatus, ConditionType, ZoneCount
from nodeyard.kube.conditions import FALSE, TRUE, to_wire
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import Blocked, ObjectRef, Plan
from nodeyard.runtime.capability import Event, StatusWrite

WARNING: Final = "Warning"
_NAMED_PODS: Final = 10
_NOTICES: Final = frozenset({Reason.SERVED_ELSEWHERE.value})
"""Refusals that do not make a class unready."""


def status_class(snapshot: ClassSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    affinity_class = snapshot.affinity_class
    if _is_going(affinity_class, plan):
        return ()
    before, after = affinity_class.status, _status(snapshot, plan.blocked, outcome, now)
    if wire(after) == wire(before):
        return ()
    return [StatusWrite(object=class_ref(affinity_class), status=wire(after))]


def _is_going(affinity_class: AffinityClass, plan: Plan) -> bool:
    """Return whether this reconcile removes the finalizer of a class being deleted."""
    is_let_go = any(each.reason == Reason.FINALIZER_REMOVED for each in plan.actions)
    return affinity_class.is_deleting and is_let_go


def wire(status: AffinityClassStatus) -> Object:
    return {
        **msgspec.to_builtins(status),
        "zones": [msgspec.to_builtins(each) for each in status.zones],
        "inUseBy": [msgspec.to_builtins(each) for each in status.in_use_by],
        "conditions": to_wire(status.conditions),
    }


def _status(
    snapshot: ClassSnapshot, blocked: Sequence[Blocked], outcome: Outcome, now: datetime
) -> AffinityClassStatus:
    affinity_class = snapshot.affinity_class
    generation = affinity_class.metadata.generation
    nodes_match = _nodes_match(snapshot)
    conditions = [_ready(snapshot, blocked, outcome, nodes_match), nodes_match]
    present = tuple(each for each in affinity_class.status.conditions if each.type != ConditionType.RELEASES_ONLY)
    if notice := next((each for each in blocked if each.reason in _NOTICES), None):
        present = affinity_class.status.conditions
        conditions.append(make_condition(ConditionType.RELEASES_ONLY.value, TRUE, notice.reason, notice.facts))
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
    kind, nodes = ConditionType.NODES_MATCH.value, sum(snapshot.zones.values())
    if not nodes:
        return make_condition(kind, FALSE, Reason.NO_NODE_MATCHES, {"class": snapshot.affinity_class.name})
    return make_condition(
        kind, TRUE, Reason.NODES_MATCH, {"nodes": nodes, "zones": dict(sorted(snapshot.zones.items()))}
    )


def _ready(snapshot: ClassSnapshot, blocked: Sequence[Blocked], outcome: Outcome, nodes_match: Condition) -> Condition:
    kind = ConditionType.READY.value
    if errors := selector_errors(snapshot.affinity_class.spec):
        return make_condition(kind, FALSE, Reason.BAD_SELECTOR, {"errors": errors})
    found = failure_condition(kind, outcome) or refusal_condition(kind, blocked, _NOTICES)
    return found or msgspec.structs.replace(nodes_match, type=kind)


def class_events(snapshot: ClassSnapshot) -> Sequence[Event]:
    """Return warnings about pods outside the class, and a used class without nodes."""
    name, ref = snapshot.affinity_class.name, class_ref(snapshot.affinity_class)
    events: list[Event] = []
    if snapshot.violator_count:
        facts = {"class": name, "count": snapshot.violator_count, "pods": list(snapshot.violators[:_NAMED_PODS])}
        events.append(_warning(ref, Reason.VIOLATED, facts))
    if snapshot.users and not any(snapshot.zones.values()):
        events.append(_warning(ref, Reason.NO_NODE_MATCHES, {"class": name}))
    return events


def _warning(ref: ObjectRef, reason: Reason, facts: Object) -> Event:
    return Event(ref, WARNING, reason.value, placement_text(reason, facts), is_standing=True)
