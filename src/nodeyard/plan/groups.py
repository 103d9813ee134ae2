"""Groups of equal actions: a plan for 10,000 nodes usually does a handful of different things.

Two actions are equal if verb, kind, reason, disruption and the changed fields are; names and values may differ.
Grouping is linear in the plans.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from nodeyard.plan.model import Action, Blocked, FieldChange, ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason


@dataclass
class ActionGroup:
    """Equal actions, in the order of the plans."""

    actions: list[Action] = field(default_factory=list)
    after: dict[int, ActionGroup] = field(default_factory=dict)
    """Groups that the actions wait for, by identity."""
    unknown: dict[str, None] = field(default_factory=dict)
    """Ids of actions that the plans do not contain."""

    @property
    def first(self) -> Action:
        return self.actions[0]

    def messages(self) -> list[str]:
        """Return the different texts of the actions."""
        return list(dict.fromkeys(action.facts.text() for action in self.actions))


@dataclass
class BlockedGroup:
    """Blocked objects of one kind with the same reason, in the order of the plans."""

    word: str
    reason: str
    objects: list[ObjectRef] = field(default_factory=list)
    by_text: dict[str, list[ObjectRef]] = field(default_factory=dict)


def group_key(action: Action) -> tuple[Hashable, ...]:
    """Return what equal actions have in common."""
    ref = action.object
    changes = tuple((sign(change), change.path) for change in action.diff)
    return action.verb.value, ref.api_version, ref.kind, action.reason, action.disruption.value, changes


def sign(change: FieldChange) -> str:
    """Return `+` for an added field, `-` for a removed one, `~` for a changed one."""
    return "+" if change.from_ is None else "-" if change.to is None else "~"


def group_actions(plans: Iterable[Plan], *, is_folded: bool = True) -> list[ActionGroup]:
    """Group the actions of several plans, with what each group waits for. Unfolded, each action is its own group."""
    groups: dict[Hashable, ActionGroup] = {}
    for number, plan in enumerate(plans):
        by_id: dict[str, ActionGroup] = {}
        for action in plan.actions:
            key = group_key(action) if is_folded else (number, action.id)
            group = by_id[action.id] = groups.setdefault(key, ActionGroup())
            group.actions.append(action)
        for action in plan.actions:
            group = by_id[action.id]
            for each in action.after:
                if (other := by_id.get(each)) is None:
                    group.unknown[each] = None
                elif other is not group:
                    group.after[id(other)] = other
    return list(groups.values())


def group_blocked(plans: Iterable[Plan]) -> list[BlockedGroup]:
    """Group blocked objects by kind and reason."""
    groups: dict[Hashable, BlockedGroup] = {}
    for plan in plans:
        for each in plan.blocked:
            word = "Waiting" if each.is_waiting else "Blocked"
            group = groups.setdefault(_blocked_key(each), BlockedGroup(word, each.reason))
            group.objects.append(each.object)
            group.by_text.setdefault(each.facts.text(), []).append(each.object)
    return list(groups.values())


def _blocked_key(each: Blocked) -> tuple[Hashable, ...]:
    return each.object.kind, each.reason, each.is_waiting


def group_plans(plans: Iterable[Plan]) -> list[Sequence[Plan]]:
    """Join plans of one capability that do the same things: the plans of 5,000 nodes of one profile read as one."""
    groups: dict[Hashable, list[Plan]] = {}
    for plan in plans:
        actions = dict.fromkeys(map(group_key, plan.actions))
        blocked = dict.fromkeys(map(_blocked_key, plan.blocked))
        groups.setdefault((plan.capability, *actions, None, *blocked), []).append(plan)
    return list(groups.values())


def is_held(group: BlockedGroup) -> bool:
    return group.reason == EngineReason.NEEDS_APPROVAL
