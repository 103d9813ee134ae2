"""Plans as the page shows them: equal actions are one group, and so are equal refusals.

Folding is linear in the plan and pure; it runs in the planner's thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from nodeyard.dashboard.wire import GROUPED, SAMPLES, BlockedGroup, Group, Held, PlanSummary
from nodeyard.plan.brake import Braked, disrupted_nodes, is_disruptive
from nodeyard.plan.groups import group_key
from nodeyard.plan.message import Message
from nodeyard.plan.model import Action, Blocked, Plan
from nodeyard.plan.reasons import EngineReason, NeedsApproval

_DIGITS: Final = 10


def summarize(braked: Braked, new: Collection[Any] | None = None) -> PlanSummary:
    """Return the summary of a plan. `new` has the identities of the actions that a tried-out change causes."""
    now, held = braked
    groups = fold(now.actions, new)
    blocked = fold_blocked(each for each in now.blocked if each.reason != EngineReason.NEEDS_APPROVAL)
    return PlanSummary(
        capability=now.capability,
        key=now.key,
        id=now.id,
        held=None if held is None else _held(now, held, new),
        groups=groups[:GROUPED],
        groups_total=len(groups) if len(groups) > GROUPED else 0,
        blocked=blocked[:GROUPED],
        blocked_total=len(blocked) if len(blocked) > GROUPED else 0,
    )


def _held(now: Plan, held: Plan, new: Collection[Any] | None) -> Held:
    why = next((each for each in now.blocked if each.reason == EngineReason.NEEDS_APPROVAL), None)
    group_nodes = max((action.group_nodes for action in held.actions), default=0)
    return Held(
        id=held.id,
        reason=EngineReason.NEEDS_APPROVAL.value,
        message="" if why is None else _cause(why.facts),
        nodes=max(len(disrupted_nodes(held.actions)), group_nodes),
        actions=len(held.actions),
        groups=fold(held.actions, new)[:GROUPED],
    )


def _cause(facts: Message) -> str:
    """Return why a plan is held; the page has a button for the command that the full text names."""
    return f"{facts.cause}." if isinstance(facts, NeedsApproval) else facts.text()


def fold(actions: Iterable[Action], new: Collection[Any] | None = None) -> tuple[Group, ...]:
    """Fold equal actions into groups, disruptive ones first, then in the order of the plan."""
    by_group = members_of(actions, new)
    group_of = {action.id: id for id, members in by_group.items() for action in members}
    groups = [_group(id, members, group_of, new) for id, members in by_group.items()]
    return tuple(sorted(groups, key=lambda group: group.disruption == "none"))


def members_of(actions: Iterable[Action], new: Collection[Any] | None = None) -> dict[str, list[Action]]:
    """Return the actions of each group by its id, which is the same as long as what the actions do is equal."""
    by_key: dict[tuple[Any, ...], list[Action]] = {}
    for action in actions:
        by_key.setdefault((*group_key(action), is_new(action, new)), []).append(action)
    return {sha256(repr(key).encode()).hexdigest()[:_DIGITS]: members for key, members in by_key.items()}


def is_new(action: Action, new: Collection[Any] | None) -> bool:
    return new is not None and identity(action) in new


def identity(action: Action) -> tuple[Any, ...]:
    """Return what tells whether two plans contain the same action."""
    ref = action.object
    return action.verb.value, ref.api_version, ref.kind, ref.cluster, ref.namespace, ref.name, action.reason


def _group(id: str, members: Sequence[Action], group_of: Mapping[str, str], new: Collection[Any] | None) -> Group:
    first = members[0]
    after = {group_of[each] for action in members for each in action.after if each in group_of}
    return Group(
        id=id,
        verb=first.verb.value,
        kind=first.object.kind,
        reason=first.reason,
        message=first.facts.text(),
        disruption=first.disruption.value,
        nodes=len(disrupted_nodes(members)) if is_disruptive(first) else 0,
        count=len(members),
        samples=tuple(action.object for action in members[:SAMPLES]),
        after=tuple(sorted(after - {id})),
        is_new=is_new(first, new),
    )


def fold_blocked(blocked: Iterable[Blocked]) -> tuple[BlockedGroup, ...]:
    groups: dict[tuple[str, str], list[Blocked]] = {}
    for each in blocked:
        groups.setdefault((each.reason, each.facts.text()), []).append(each)
    return tuple(
        BlockedGroup(
            reason=reason,
            message=message,
            count=len(members),
            samples=tuple(each.object for each in members[:SAMPLES]),
        )
        for (reason, message), members in groups.items()
    )


def to_wire(action: Action) -> dict[str, Any]:
    """Return an action in its public form, with its sentence."""
    wire: dict[str, Any] = msgspec.to_builtins(action)
    return wire | {"message": action.facts.text()}
