"""What is said about a pass: what was done to a node's services, and what stands in their way."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.profiles.messages import text
from nodeyard.capabilities.profiles.planning.services import node_ref, role_ref
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.capabilities.profiles.status import NOTICES, WAITING
from nodeyard.plan.model import ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import Event

NORMAL = "Normal"
WARNING = "Warning"
FAILED = "Failed"
"""Ends the reason of an event about a write that did not succeed."""

_TOLD = frozenset({Reason.OBJECT_CREATED, Reason.OBJECT_RECONFIGURED, Reason.OBJECT_DELETED, Reason.OBJECT_LET_GO})
_HELD = EngineReason.NEEDS_APPROVAL
_PATIENT = WAITING - {Reason.STALLED}
"""They go on by themselves."""
_BAD = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def events(snapshot: NodeSnapshot, plan: Plan, outcome: Outcome) -> Sequence[Event]:
    ref = node_ref(snapshot)
    told = []
    for each in outcome.results:
        action = each.action
        if each.result is Result.DONE and action.reason in _TOLD:
            told.append(Event(ref, NORMAL, action.reason, text(action.reason, action.facts)))
        elif each.result in _BAD:
            told.append(Event(ref, WARNING, f"{action.reason}{FAILED}", f"{action.object}: {each.message}"))
    held = dict.fromkeys(text(each.reason, each.facts) for each in plan.blocked if each.reason == _HELD)
    told += [Event(_approver(snapshot), WARNING, _HELD.value, message, is_standing=True) for message in held]
    for blocked in plan.blocked:
        if blocked.reason not in NOTICES and blocked.reason != _HELD:
            kind = NORMAL if blocked.reason in _PATIENT else WARNING
            told.append(Event(ref, kind, blocked.reason, text(blocked.reason, blocked.facts), is_standing=True))
    return told


def _approver(snapshot: NodeSnapshot) -> ObjectRef:
    """What many nodes wait for is told of once, where it is approved."""
    if snapshot.role is not None:
        return role_ref(snapshot.role)
    roots = (loss.root for loss in snapshot.losses.values() if loss.root is not None)
    return next(roots, node_ref(snapshot))
