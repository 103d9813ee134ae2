"""Events of a reconcile: actions on the services of a node, and reasons that block them."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.profiles.planning.rollout import is_brief
from nodeyard.capabilities.profiles.planning.services import node_ref, role_ref
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.report.status import BAD, NOTICES, WAITING
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.plan.model import ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import Event

NORMAL = "Normal"
WARNING = "Warning"
FAILED = "Failed"
"""Suffix of the reason of an event about a failed write."""

_REPORTED = frozenset(
    {Reason.OBJECT_CREATED, Reason.OBJECT_RECONFIGURED, Reason.OBJECT_DELETED, Reason.OBJECT_RELEASED}
)
_NEEDS_APPROVAL = EngineReason.NEEDS_APPROVAL
_SELF_RESOLVING = WAITING - {Reason.STALLED}
"""Waits that end without user action; their events are Normal."""


def events(snapshot: NodeSnapshot, plan: Plan, outcome: Outcome) -> Sequence[Event]:
    ref = node_ref(snapshot)
    found = []
    for each in outcome.results:
        action = each.action
        if each.result is Result.DONE and action.reason in _REPORTED:
            found.append(Event(ref, NORMAL, action.reason, action.facts.past_text()))
        elif each.result in BAD:
            found.append(Event(ref, WARNING, f"{action.reason}{FAILED}", f"{action.object}: {each.message}"))
    messages = dict.fromkeys(each.facts.text() for each in plan.blocked if each.reason == _NEEDS_APPROVAL)
    found += [
        Event(_approver(snapshot), WARNING, _NEEDS_APPROVAL.value, message, is_standing=True) for message in messages
    ]
    for blocked in plan.blocked:
        is_notice = blocked.reason in NOTICES or is_brief(blocked.facts, snapshot)
        if not is_notice and blocked.reason != _NEEDS_APPROVAL:
            kind = NORMAL if blocked.reason in _SELF_RESOLVING else WARNING
            found.append(Event(ref, kind, blocked.reason, blocked.facts.text(), is_standing=True))
    return found


def _approver(snapshot: NodeSnapshot) -> ObjectRef:
    """Return the object on which a bulk removal is approved; its event is sent once, on that object."""
    if snapshot.role is not None:
        return role_ref(snapshot.role)
    roots = (removal.root for removal in snapshot.removals.values() if removal.root is not None)
    return next(roots, node_ref(snapshot))
