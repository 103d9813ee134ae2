"""A plan's id: a hash of what it does. Who approves an id approves exactly that.

Verbs, objects, diffs, disruption and order count. Facts and reasons merely describe, and `wakeAt` is about the next
plan. Nor do moments inside a diff count: a plan that writes down when a drain began would be another one each second,
and could never be approved.

What is held for approval may be a step of something larger. Its other steps are then covered by the same id: a release
that a restart cut in two is not asked about twice.
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


def identity(plan: Plan) -> str:
    """The same in every process, and whatever order the actions are listed in."""
    digest = sha256(_encode([plan.capability, plan.key]))
    named = {action.id: _subject(action) for action in plan.actions}
    for line in sorted(_line(action, named) for action in plan.actions):
        digest.update(b"\n")
        digest.update(line)
    return digest.hexdigest()[:_DIGITS]


def approval_identity(plan: Plan) -> str:
    """What an approval of this plan is for: its undertakings, and of what is part of none, exactly that."""
    digest = sha256(_encode([plan.capability, plan.key]))
    named = {action.id: _subject(action) for action in plan.actions}
    lines = {_encode(["part of", each.part_of]) if each.part_of else _line(each, named) for each in plan.actions}
    for line in sorted(lines):
        digest.update(b"\n")
        digest.update(line)
    return digest.hexdigest()[:_DIGITS]


def identified(plan: Plan) -> Plan:
    """The plan with its id."""
    return msgspec.structs.replace(plan, id=identity(plan))


def with_actions(plan: Plan, actions: Iterable[Action]) -> Plan:
    """The plan that does only these, with an id of its own."""
    return identified(msgspec.structs.replace(plan, actions=tuple(actions)))


def _subject(action: Action) -> Json:
    ref = action.object
    subject = [action.verb.value, ref.api_version, ref.kind, ref.namespace, ref.name, ref.uid]
    return [*subject, ref.cluster] if ref.cluster else subject


def _line(action: Action, named: dict[str, Json]) -> bytes:
    # What is not in the plan is no part of its order: it may have been done meanwhile.
    after = sorted(_encode(named[each]).decode() for each in action.after if each in named)
    line = _encode([named[action.id], action.disruption.value, action.disrupts, after, action.diff])
    return _MOMENT.sub(b"", line)
