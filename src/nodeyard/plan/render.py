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

from collections.abc import Iterable, Iterator, Mapping

from nodeyard.plan.brake import disturbed_nodes, is_disruptive
from nodeyard.plan.layout import WIDTH, counted, paragraph, shown
from nodeyard.plan.model import Action, Blocked, FieldChange, Plan
from nodeyard.plan.reasons import Messages, text_of


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
    for blocked in _grouped(plan.blocked, messages):
        lines += ["", *_refusal(*blocked, width)]
    lines += ["", _summary(plan)]
    return "\n".join(lines) + "\n"


def _action(action: Action, actions: Mapping[str, Action], messages: Messages, width: int) -> Iterator[str]:
    yield from paragraph(f"{_headline(action)}{_disruption(action)}", 2, width, hang=2)
    text = text_of(messages, action.reason, action.facts)
    yield from paragraph(f"{action.reason}: {text}", 4, width, hang=2)
    for each in action.after:
        first = actions.get(each)
        yield from paragraph(f"waits for {_headline(first) if first else each}", 4, width, hang=2)
    for change in action.diff:
        yield _change(change, width)


def _headline(action: Action) -> str:
    return f"{action.verb.value} {action.object}"


def _disruption(action: Action) -> str:
    if not is_disruptive(action):
        return ""
    where = f" (node {action.disrupts})" if action.disrupts and action.disrupts != action.object.name else ""
    return f"  ! {action.disruption.value}{where}"


def _change(change: FieldChange, width: int) -> str:
    if change.from_ is None:
        return _valued(f"    + {change.path}", change.to, width)
    if change.to is None:
        return _valued(f"    - {change.path}", change.from_, width)
    start = f"    ~ {change.path} "
    room = (width - len(start) - len(" -> ")) // 2
    return f"{start}{shown(change.from_, room)} -> {shown(change.to, room)}"


def _valued(start: str, value: object, width: int) -> str:
    return start if value == {} else f"{start} {shown(value, width - len(start) - 1)}"


def _grouped(blocked: Iterable[Blocked], messages: Messages) -> Iterator[tuple[str, list[str]]]:
    """Refusals of the same reason and text once, with the objects they are about."""
    groups: dict[str, list[str]] = {}
    for each in blocked:
        text = f"{each.reason}: {text_of(messages, each.reason, each.facts)}"
        groups.setdefault(text, []).append(str(each.object))
    yield from groups.items()


def _refusal(text: str, objects: list[str], width: int) -> Iterator[str]:
    yield from paragraph(f"Blocked {', '.join(objects)}", 2, width, hang=2)
    yield from paragraph(text, 4, width, hang=2)


def _summary(plan: Plan) -> str:
    parts = [counted(len(plan.actions), "action") if plan.actions else "nothing to do"]
    if waiting := sum(bool(action.after) for action in plan.actions):
        parts.append(f"{waiting} waiting for others")
    if disturbed := disturbed_nodes(plan.actions):
        parts.append(f"{counted(len(disturbed), 'node')} disrupted")
    parts.append(f"{len(plan.blocked)} refused" if plan.blocked else "nothing refused")
    return ", ".join(parts)
