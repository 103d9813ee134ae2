"""A plan as text for people: `nodeyard plan -o text`.

    spares nodetemplates (plan 5d0c2f7a91be)

      Patch Node n1
        Claimed: takes spare n1 for template web
        + metadata.labels[nyallocator.cybozu.io/node-template] "web"
        - spec.taints[node.cybozu.io/spare:NoSchedule]

    1 action, nothing refused

The text is made of the plan and of the capability's messages alone, so that equal plans read alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from nodeyard.plan.brake import disturbed_nodes, is_disruptive
from nodeyard.plan.layout import WIDTH, counted, paragraph, shown
from nodeyard.plan.model import Action, Blocked, FieldChange, ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason, Messages, text_of

NAMED: Final = 20
"""How many objects of one refusal are named; the JSON form names them all."""


def render_plans(plans: Iterable[tuple[Plan, Messages]], width: int = WIDTH) -> str:
    """Several plans, by capability and key."""
    ordered = sorted(plans, key=lambda each: (each[0].capability, each[0].key))
    return "\n".join(render_plan(plan, messages, width) for plan, messages in ordered)


def render_plan(plan: Plan, messages: Messages, width: int = WIDTH) -> str:
    title = f"{plan.capability} {plan.key}"
    if not plan.actions and not plan.blocked:
        return f"{title}: nothing to do\n"
    lines = [f"{title} (plan {plan.id})" if plan.id and plan.actions else title]
    actions = {action.id: action for action in plan.actions}
    for action in plan.actions:
        lines += ["", *_action(action, actions, messages, width)]
    for text, refs in _grouped(plan.blocked, messages):
        lines += ["", *_refusal(text, refs, width)]
    lines += ["", _summary(plan)]
    return "\n".join(lines) + "\n"


def _action(action: Action, actions: Mapping[str, Action], messages: Messages, width: int) -> Iterator[str]:
    yield from paragraph(f"{_headline(action)}{_disruption(action)}", 2, width, hang=2)
    text = text_of(messages, action.reason, action.facts)
    yield from paragraph(f"{action.reason}: {text}", 4, width, hang=2)
    for each in action.after:
        first = actions.get(each)
        what = f"{_headline(first)} ({first.reason})" if first else each
        yield from paragraph(f"waits for {what}", 4, width, hang=2)
    for change in action.diff:
        yield _change(change, width)


def _headline(action: Action) -> str:
    return f"{action.verb.value} {action.object}"


def _disruption(action: Action) -> str:
    if not is_disruptive(action):
        return ""
    return f"  ! {action.disruption.value}{_where(action)}"


def _where(action: Action) -> str:
    nodes = action.disrupts
    if not nodes or nodes == (action.object.name,):
        return ""
    return f" (node {nodes[0]})" if len(nodes) == 1 else f" ({counted(len(nodes), 'node')})"


def _change(change: FieldChange, width: int) -> str:
    if change.from_ is None:
        return _valued(f"    + {change.path}", change.to, width)
    if change.to is None:
        return _valued(f"    - {change.path}", change.from_, width)
    start = f"    ~ {change.path} "
    room = width - len(start) - len(" -> ")
    to = shown(change.to, room // 2)
    from_ = shown(change.from_, room - len(to))
    return f"{start}{from_} -> {shown(change.to, room - len(from_))}"


def _valued(start: str, value: object, width: int) -> str:
    return start if value == {} else f"{start} {shown(value, width - len(start) - 1)}"


def _grouped(blocked: Iterable[Blocked], messages: Messages) -> Iterator[tuple[str, list[ObjectRef]]]:
    """Refusals of the same text once, with the objects of one kind that they are about."""
    groups: dict[tuple[str, str], list[ObjectRef]] = {}
    for each in blocked:
        text = f"{each.reason}: {text_of(messages, each.reason, each.facts)}"
        groups.setdefault((text, each.object.kind), []).append(each.object)
    for (text, _), refs in groups.items():
        yield text, refs


def _refusal(text: str, refs: Sequence[ObjectRef], width: int) -> Iterator[str]:
    names = [str(refs[0]), *(str(ref).removeprefix(f"{ref.kind} ") for ref in refs[1:NAMED])]
    if len(refs) > NAMED:
        names.append(f"and {len(refs) - NAMED} more")
    yield from paragraph(f"Blocked {', '.join(names)}", 2, width, hang=2)
    yield from paragraph(text, 4, width, hang=2)


def _summary(plan: Plan) -> str:
    parts = [counted(len(plan.actions), "action") if plan.actions else "nothing to do"]
    if waiting := sum(bool(action.after) for action in plan.actions):
        parts.append(f"{waiting} waiting for others")
    if disturbed := disturbed_nodes(plan.actions):
        parts.append(f"{counted(len(disturbed), 'node')} disrupted")
    held = sum(each.reason == EngineReason.NEEDS_APPROVAL for each in plan.blocked)
    if held:
        parts.append(f"{held} held")
    refused = len(plan.blocked) - held
    parts.append(f"{refused} refused" if refused else "nothing refused")
    return ", ".join(parts)
