"""Plan ids: a hash of what the plan does. An approval of an id is for exactly these actions.

The hash covers verbs, objects, diffs, disruption and order. Facts, reasons and `wakeAt` are not part of it. Timestamps
inside a diff are ignored: a plan that records when a drain began would otherwise have a new id each second and could
never be approved.

Actions of one approval group share one id. A release that a restart interrupted needs no second approval, and a change
that spans several keys needs one approval. If several groups are held together, each has its own id, so that a
completed group does not invalidate the approval of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256

import msgspec

from nodeyard.kube.json import Json
from nodeyard.plan.model import Action, Plan

_DIGITS = 12
_MOMENT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_encode = msgspec.json.Encoder(order="deterministic").encode


def compute_id(plan: Plan) -> str:
    """Hash the plan; the id is the same in every process and for any order of the actions."""
    named = {action.id: _subject(action) for action in plan.actions}
    return _digest([plan.capability, plan.key], (_line(action, named) for action in plan.actions))


def approvals(plan: Plan, actions: Iterable[Action]) -> dict[str, list[Action]]:
    """Return actions by the id that approves them: that of their group, or one id for all without a group."""
    by_group: dict[str, list[Action]] = {}
    for action in actions:
        by_group.setdefault(action.approval_group, []).append(action)
    return {_approval_id(plan, group, members): members for group, members in by_group.items()}


def _approval_id(plan: Plan, group: str, members: list[Action]) -> str:
    if group:
        return group_id(plan.capability, group)
    return compute_id(msgspec.structs.replace(plan, actions=tuple(members)))


def group_id(capability: str, group: str) -> str:
    """Return the id that approves an approval group; it is the same for all keys of the group."""
    return _digest([capability], (_encode(["part of", group]),))


def assign_id(plan: Plan) -> Plan:
    """Return the plan with its id."""
    return msgspec.structs.replace(plan, id=compute_id(plan))


def with_actions(plan: Plan, actions: Iterable[Action]) -> Plan:
    """Return the plan reduced to these actions, with a new id."""
    return assign_id(msgspec.structs.replace(plan, actions=tuple(actions)))


def _digest(whose: list[str], lines: Iterable[bytes]) -> str:
    digest = sha256(_encode(whose))
    for line in sorted(lines):
        digest.update(b"\n")
        digest.update(line)
    return digest.hexdigest()[:_DIGITS]


def _subject(action: Action) -> Json:
    ref = action.object
    subject = [action.verb.value, ref.api_version, ref.kind, ref.namespace, ref.name, ref.uid]
    return [*subject, ref.cluster] if ref.cluster else subject


def _line(action: Action, named: dict[str, Json]) -> bytes:
    # Dependencies outside the plan are ignored: they may have been carried out already.
    after = sorted(_encode(named[each]).decode() for each in action.after if each in named)
    line = _encode([named[action.id], action.disruption.value, action.disrupts, after, action.diff])
    return _MOMENT.sub(b"", line)
