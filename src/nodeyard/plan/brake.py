"""The brake: a plan that would disturb very many nodes at once does its harmless part and waits for a person.

Both bounds have to be exceeded, the number of nodes and their share, so that neither a small fleet nor a large one is
held up by its size. What is held is a plan of its own, whose id is to be approved: the id stays the same while harmless
things come and go around it, and changes with what is held. Where that is several undertakings, or one and more, the id
is theirs joined, and who approves it approves each.

An undertaking in which plans of several keys have a part is judged by all the nodes that it disturbs: a thousand plans
of one node each are no less than one plan of a thousand.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import msgspec

from nodeyard.plan.identity import approvals, with_actions
from nodeyard.plan.model import Action, Blocked, Disruption, ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason

_JOINT = "-"
_LIMIT = re.compile(r"(?P<nodes>\d+)(?:,(?P<percent>\d+)%)?")


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """How many nodes a plan may disturb unasked: as many as this, or as large a share."""

    nodes: int = 25
    percent: int = 10

    def is_exceeded(self, disturbed: int, managed: int) -> bool:
        return disturbed > self.nodes and disturbed * 100 > self.percent * managed

    def __str__(self) -> str:
        return f"{self.nodes} and more than {self.percent}%" if self.percent else str(self.nodes)


class Braked(NamedTuple):
    """A plan, parted."""

    now: Plan
    """To be run; what is held stands among its blocked."""
    held: Plan | None
    """To be approved by its id; None where nothing is held."""


def parse_limit(text: str) -> Limit:
    """`25,10%`, or `25` for a number alone, whatever its share. Raises ValueError."""
    parts = _LIMIT.fullmatch(text.replace(" ", ""))
    percent = int(parts["percent"] or 0) if parts else 0
    if parts is None or percent > 100:
        raise ValueError(f'max disruption "{text}" is not of the form N,P% (for example 25,10%), with P at most 100')
    return Limit(nodes=int(parts["nodes"]), percent=percent)


def brake(plan: Plan, limit: Limit, managed: int, approved: Collection[str] = ()) -> Braked:
    """Part the plan where it disturbs more than the limit, of so many managed nodes, and nobody has approved that.

    The parts have ids. A plan that stays whole is given back as it came: an id costs more than making the plan, and who
    shows it gives it one.
    """
    counted = list(filter(_is_counted, plan.actions))
    if not limit.is_exceeded(_disturbed_in_all(counted), managed):
        return Braked(plan, None)
    let_go = {part for id in approved for part in id.split(_JOINT)}
    asked = _asked(plan, counted, limit, managed, let_go)
    if not asked:
        return Braked(plan, None)
    counted = [action for actions in asked.values() for action in actions]
    held_ids = _with_dependents(plan.actions, counted)
    held_actions = tuple(action for action in plan.actions if action.id in held_ids)
    id = _JOINT.join(sorted(asked))
    held = msgspec.structs.replace(plan, id=id, actions=held_actions, blocked=(), decisions=(), wake_at=None)
    now = with_actions(plan, (action for action in plan.actions if action.id not in held_ids))
    facts = {"id": id, "nodes": _disturbed_in_all(counted), "managed": managed, "limit": str(limit)}
    return Braked(msgspec.structs.replace(now, blocked=plan.blocked + _blocked(held_actions, facts)), held)


def _asked(
    plan: Plan, counted: Iterable[Action], limit: Limit, managed: int, let_go: Collection[str]
) -> dict[str, list[Action]]:
    """What has to be approved, by its id. What is too much by itself does not hold up what is not."""
    asked = {id: actions for id, actions in approvals(plan, counted).items() if id not in let_go}
    shared = {id: actions for id, actions in asked.items() if limit.is_exceeded(_shared_by(actions), managed)}
    own = {id: actions for id, actions in asked.items() if id not in shared}
    disturbed = disturbed_nodes(action for actions in own.values() for action in actions)
    return asked if limit.is_exceeded(len(disturbed), managed) else shared


def _disturbed_in_all(actions: Collection[Action]) -> int:
    """Those of the plan itself, or of the largest undertaking that it has a part in."""
    return max(len(disturbed_nodes(actions)), _shared_by(actions))


def _shared_by(actions: Iterable[Action]) -> int:
    return max((action.shared_by for action in actions), default=0)


def disturbed_nodes(actions: Iterable[Action]) -> set[str]:
    """What the disruptive actions disturb: nodes by name, and objects that name no node each by itself."""
    return {node for action in actions if is_disruptive(action) for node in _disturbed(action)}


def is_disruptive(action: Action) -> bool:
    return action.disruption is not Disruption.NONE


def _is_counted(action: Action) -> bool:
    """What belongs to something that has been let go once is not asked about again, or nothing would ever end."""
    return is_disruptive(action) and not action.is_granted


def _disturbed(action: Action) -> tuple[str, ...]:
    ref = action.object
    is_node = ref.kind == "Node" and ref.api_version == "v1"
    if action.disrupts or is_node:
        return tuple(_placed(node, ref.cluster) for node in action.disrupts or (ref.name,))
    return (f"{ref.api_version} {ref}",)


def _placed(node: str, cluster: str) -> str:
    """With its cluster, where that is not our own: clusters may well have nodes of the same name."""
    return f"{cluster}:{node}" if cluster and ":" not in node else node


def _with_dependents(actions: Iterable[Action], first: Iterable[Action]) -> set[str]:
    """The ids of the first, and of all that comes after them, at any remove."""
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


def _blocked(actions: Iterable[Action], facts: dict[str, Any]) -> tuple[Blocked, ...]:
    """One for each object, also where several actions concern it."""
    refs: dict[ObjectRef, None] = dict.fromkeys(action.object for action in actions)
    return tuple(Blocked(object=ref, reason=EngineReason.NEEDS_APPROVAL.value, facts=facts) for ref in refs)
