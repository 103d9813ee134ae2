"""A plan's id: a hash of what it does. Who approves an id approves exactly that.

Verbs, objects, diffs, disruption and order count. Facts and reasons merely describe, and `wakeAt` is about the next
plan. Nor do moments inside a diff count: a plan that writes down when a drain began would be another one each second,
and could never be approved.

What is held for approval may be a step of something larger. Its other steps are then covered by the same id: a release
that a restart cut in two is not asked about twice, and one in which several keys have a part is asked about once. Where
several such undertakings are held together each has its own id, so that one which is done does not take the approval of
the others with it.
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
    named = {action.id: _subject(action) for action in plan.actions}
    return _digest([plan.capability, plan.key], (_line(action, named) for action in plan.actions))


def approvals(plan: Plan, actions: Iterable[Action]) -> dict[str, list[Action]]:
    """Actions of a plan by the id of what is to be approved: their undertaking, or all that are part of none, exactly
    those."""
    together: dict[str, list[Action]] = {}
    for action in actions:
        together.setdefault(action.part_of, []).append(action)
    return {_approval(plan, undertaking, parts): parts for undertaking, parts in together.items()}


def _approval(plan: Plan, undertaking: str, parts: list[Action]) -> str:
    if undertaking:
        # Whichever keys have a part in it.
        return _digest([plan.capability], (_encode(["part of", undertaking]),))
    return identity(msgspec.structs.replace(plan, actions=tuple(parts)))


def identified(plan: Plan) -> Plan:
    """The plan with its id."""
    return msgspec.structs.replace(plan, id=identity(plan))


def with_actions(plan: Plan, actions: Iterable[Action]) -> Plan:
    """The plan that does only these, with an id of its own."""
    return identified(msgspec.structs.replace(plan, actions=tuple(actions)))


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
    # What is not in the plan is no part of its order: it may have been done meanwhile.
    after = sorted(_encode(named[each]).decode() for each in action.after if each in named)
    line = _encode([named[action.id], action.disruption.value, action.disrupts, after, action.diff])
    return _MOMENT.sub(b"", line)
