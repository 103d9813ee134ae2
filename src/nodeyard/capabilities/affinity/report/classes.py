"""Status and events of an AffinityClass: its nodes, its users and the pods outside it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.affinity.messages.classes import InvalidSelector, NodesMatch, NoNodeMatches, PodsOutside
from nodeyard.capabilities.affinity.planning.classes import NAMED_USERS, selector_errors
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.conditions import (
    failure_condition,
    make_condition,
    refusal_condition,
    set_conditions,
)
from nodeyard.capabilities.affinity.snapshot import ClassSnapshot
from nodeyard.capabilities.affinity.types import AffinityClassStatus, ConditionType, ZoneCount
from nodeyard.kube.conditions import FALSE, TRUE, to_wire
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked, Plan
from nodeyard.runtime.capability import Event, StatusWrite

WARNING: Final = "Warning"
_NAMED_PODS: Final = 10
_NOTICES: Final = frozenset({Reason.SERVED_BY_API_SERVICE.value})
"""Refusals that do not make a class unready."""


def status_class(snapshot: ClassSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    affinity_class = snapshot.affinity_class
    if affinity_class.is_deleting and any(each.reason == Reason.FINALIZER_REMOVED for each in plan.actions):
        return ()
    before, after = affinity_class.status, _status(snapshot, plan.blocked, outcome, now)
    if wire(after) == wire(before):
        return ()
    return [StatusWrite(object=affinity_class.ref, status=wire(after))]


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


def _ready(snapshot: ClassSnapshot, blocked: Sequence[Blocked], outcome: Outcome, nodes_match: Condition) -> Condition:
    kind = ConditionType.READY.value
    if errors := selector_errors(snapshot.affinity_class.spec):
        return make_condition(kind, FALSE, InvalidSelector(errors=errors))
    found = failure_condition(kind, outcome) or refusal_condition(kind, blocked, _NOTICES)
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
