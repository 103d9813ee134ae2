"""The brake: a plan that would disrupt too many nodes runs its harmless actions and holds the rest for approval.

A plan is held when it exceeds both limits: the number of nodes and their share of the managed nodes. A small fleet is
therefore not held by the percentage, nor a large one by the number.

The held actions are a plan of their own, approved by its id. The id depends only on the held actions, so harmless
actions may come and go without changing it. If several approval groups are held, the id joins their ids, and one
approval is for all of them.

An approval group with actions in the plans of several keys is measured by all nodes it disrupts: a thousand plans of
one node each count like one plan of a thousand nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

import msgspec

from nodeyard.plan import layout
from nodeyard.plan.identity import approvals, with_actions
from nodeyard.plan.model import Action, Blocked, Disruption, ObjectRef, Plan
from nodeyard.plan.reasons import NeedsApproval

JOINT = "-"
"""Separator between the ids of several approval groups."""
_LIMIT = re.compile(r"(?P<nodes>\d+)(?:,(?P<percent>\d+)%)?")


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """Limit of nodes that a plan may disrupt without approval: this number, or this share of the managed nodes."""

    nodes: int = 25
    percent: int = 10

    def is_exceeded(self, disrupted: int, managed: int) -> bool:
        return disrupted > self.nodes and disrupted * 100 > self.percent * managed

    @property
    def option(self) -> str:
        """The value of --max-disruption, as `parse_limit` reads it."""
        return f"{self.nodes},{self.percent}%" if self.percent else str(self.nodes)

    def __str__(self) -> str:
        number = layout.counted(self.nodes, "node")
        return f"{number} and {self.percent}%" if self.percent else number


class Braked(NamedTuple):
    """A plan split by the brake."""

    now: Plan
    """The actions that run now; held objects are in its `blocked`."""
    held: Plan | None
    """The actions that need an approval of this plan's id; None if nothing is held."""


def parse_limit(text: str) -> Limit:
    """Parse `25,10%`, or `25` for a number without a percentage; raise ValueError for other text."""
    parts = _LIMIT.fullmatch(text.replace(" ", ""))
    percent = int(parts["percent"] or 0) if parts else 0
    if parts is None or percent > 100:
        raise ValueError(f'max disruption "{text}" is not N or N,P% with P at most 100, for example 25,10%')
    return Limit(nodes=int(parts["nodes"]), percent=percent)


def brake(plan: Plan, limit: Limit, managed: int, approved: Collection[str] = ()) -> Braked:
    """Split the plan if it disrupts more than the limit of the managed nodes and is not approved.

    Both parts have ids. A plan that is not split is returned unchanged and without a new id: hashing costs more than
    planning, so the id is assigned only where the plan is shown.
    """
    counted = list(filter(is_counted, plan.actions))
    is_exceeded = limit.is_exceeded(len(disrupted_nodes(counted)), managed)
    if not is_exceeded and not _is_held_apart(counted, limit, managed):
        return Braked(plan, None)
    approved_ids = {part for id in approved for part in id.split(JOINT)}
    unapproved = _find_unapproved(plan, counted, limit, managed, approved_ids)
    if not unapproved:
        return Braked(plan, None)
    counted = [action for actions in unapproved.values() for action in actions]
    held_ids = _with_dependents(plan.actions, counted)
    held_actions = tuple(action for action in plan.actions if action.id in held_ids)
    id = JOINT.join(sorted(unapproved))
    held = msgspec.structs.replace(plan, id=id, actions=held_actions, blocked=(), decisions=(), wake_at=None)
    now = with_actions(plan, (action for action in plan.actions if action.id not in held_ids))
    # The disrupted nodes are a share of the nodes their group names, if that is more than the plan's own.
    base = max([managed, *(action.group_managed for action in counted)])
    needs_approval = NeedsApproval(
        id=id,
        nodes=_count_disrupted(counted),
        managed=base,
        limit=str(limit),
        disrupts=describe_disrupted(counted) if _count_objects(counted) else "",
        always=any(action.always_asks for action in counted),
    )
    return Braked(msgspec.structs.replace(now, blocked=plan.blocked + _to_blocked(held_actions, needs_approval)), held)


def _find_unapproved(
    plan: Plan, counted: Iterable[Action], limit: Limit, managed: int, approved_ids: Collection[str]
) -> dict[str, list[Action]]:
    """Return the actions that need an approval, by id. A group over the limit does not hold the groups under it."""
    open_groups = {id: actions for id, actions in approvals(plan, counted).items() if id not in approved_ids}
    apart = {id: actions for id, actions in open_groups.items() if _is_held_apart(actions, limit, managed)}
    rest = (actions for id, actions in open_groups.items() if id not in apart)
    disrupted = disrupted_nodes(action for actions in rest for action in actions)
    return open_groups if limit.is_exceeded(len(disrupted), managed) else apart


def _count_disrupted(actions: Collection[Action]) -> int:
    """Count the nodes of the plan itself, or of its largest approval group if that is more."""
    return max([len(disrupted_nodes(actions)), *(action.group_nodes for action in actions)])


def _is_held_apart(actions: Iterable[Action], limit: Limit, managed: int) -> bool:
    """Return True if the actions are held whatever else the plan does.

    Their approval group exceeds the limit over all its keys, or one of them always needs an approval.
    """
    return any(
        action.always_asks or limit.is_exceeded(action.group_nodes, action.group_managed or managed)
        for action in actions
    )


def disrupted_nodes(actions: Iterable[Action]) -> set[str]:
    """Return what the disruptive actions disrupt: nodes by name, and each object that names no node."""
    return {node for action in actions if is_disruptive(action) for node in _disrupted_by(action)}


def describe_disrupted(actions: Collection[Action], *, in_all: bool = True) -> str:
    """Return `3 nodes`, `1 Namespace` or `3 nodes and 1 Namespace`; other objects are counted by kind.

    `in_all` also counts nodes that the plans of other keys disrupt in the same approval group.
    """
    objects = _count_objects(actions)
    total = _count_disrupted(actions) if in_all else len(disrupted_nodes(actions))
    nodes = total - objects.total()
    parts = [layout.counted(nodes, "node")] if nodes > 0 or not objects else []
    return " and ".join([*parts, *(layout.counted(number, kind) for kind, number in sorted(objects.items()))])


def _count_objects(actions: Iterable[Action]) -> Counter[str]:
    """Count by kind the disrupted objects that name no node."""
    refs = {action.object for action in actions if is_disruptive(action) and not _names_nodes(action)}
    return Counter(ref.kind for ref in refs)


def is_disruptive(action: Action) -> bool:
    return action.disruption is not Disruption.NONE


def is_counted(action: Action) -> bool:
    """Return True if the action counts against the limit.

    A later step of an approved group does not: it would be held again at each step.
    """
    return is_disruptive(action) and not action.already_approved


def _disrupted_by(action: Action) -> tuple[str, ...]:
    ref = action.object
    if _names_nodes(action):
        return tuple(_qualify(node, ref.cluster) for node in action.disrupts or (ref.name,))
    return (f"{ref.api_version} {ref}",)


def _names_nodes(action: Action) -> bool:
    ref = action.object
    return bool(action.disrupts) or (ref.kind == "Node" and ref.api_version == "v1")


def _qualify(node: str, cluster: str) -> str:
    """Prefix the node with its remote cluster: two clusters may have nodes of the same name."""
    return f"{cluster}:{node}" if cluster and ":" not in node else node


def _with_dependents(actions: Iterable[Action], first: Iterable[Action]) -> set[str]:
    """Return the ids of these actions and of all actions that depend on them, directly or not."""
    dependents: dict[str, list[str]] = {}
    for action in actions:
        for each in action.after:
            dependents.setdefault(each, []).append(action.id)
    held: set[str] = set()
    pending = [action.id for action in first]
    while pending:
        if (each := pending.pop()) not in held:
            held.add(each)
            pending += dependents.get(each, ())
    return held


def _to_blocked(actions: Iterable[Action], message: NeedsApproval) -> tuple[Blocked, ...]:
    """Return one entry for each object, even if several actions concern it."""
    refs: dict[ObjectRef, None] = dict.fromkeys(action.object for action in actions)
    return tuple(Blocked(object=ref, reason=message.reason, facts=message) for ref in refs)
