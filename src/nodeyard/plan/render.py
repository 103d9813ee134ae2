"""Text of a plan: `nodeyard plan -o text`.

    spares nodetemplates (plan 5d0c2f7a91be)

      Patch Node n1
        Claimed: claims node n1 for template web
        + metadata.labels[nyallocator.cybozu.io/node-template] "web"
        - spec.taints[node.cybozu.io/spare:NoSchedule]

    1 action, nothing blocked

The text depends only on the plan, so equal plans have equal texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from nodeyard.plan.brake import describe_disturbed, is_disruptive
from nodeyard.plan.layout import WIDTH, counted, format_value, paragraph
from nodeyard.plan.model import Action, Blocked, FieldChange, ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason

_HELD, _WAITING, _BLOCKED = "Held", "Waiting", "Blocked"
NAMED: Final = 20
"""How many blocked objects of one reason are named; the JSON form names them all."""


def render_plans(plans: Iterable[Plan], width: int = WIDTH) -> str:
    """Render several plans, ordered by capability and key."""
    ordered = sorted(plans, key=lambda each: (each.capability, each.key))
    return "\n".join(render_plan(plan, width) for plan in ordered)


def render_plan(plan: Plan, width: int = WIDTH) -> str:
    title = f"{plan.capability} {plan.key}"
    if not plan.actions and not plan.blocked:
        return f"{title}: nothing to do\n"
    lines = [f"{title} (plan {plan.id})" if plan.id and plan.actions else title]
    actions = {action.id: action for action in plan.actions}
    for action in plan.actions:
        lines += ["", *_action(action, actions, width)]
    for word, text, refs in _group(plan.blocked):
        lines += ["", *_blocked(word, text, refs, width)]
    lines += ["", _summary(plan)]
    return "\n".join(lines) + "\n"


def _action(action: Action, actions: Mapping[str, Action], width: int) -> Iterator[str]:
    yield from paragraph(f"{_headline(action)}{_disruption(action)}", 2, width, hang=2)
    yield from paragraph(f"{action.reason}: {action.facts.text()}", 4, width, hang=2)
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
    nodes, mark = action.disrupts, f"  ! {action.disruption.value}"
    if not nodes or nodes == (action.object.name,):
        return mark
    return f"{mark} (node {nodes[0]})" if len(nodes) == 1 else f"{mark} ({counted(len(nodes), 'node')})"


def _change(change: FieldChange, width: int) -> str:
    if change.from_ is None:
        return _with_value(f"    + {change.path}", change.to, width)
    if change.to is None:
        return _with_value(f"    - {change.path}", change.from_, width)
    start = f"    ~ {change.path} "
    room = width - len(start) - len(" -> ")
    to = format_value(change.to, room // 2)
    from_ = format_value(change.from_, room - len(to))
    return f"{start}{from_} -> {format_value(change.to, room - len(from_))}"


def _with_value(start: str, value: object, width: int) -> str:
    return start if value == {} else f"{start} {format_value(value, width - len(start) - 1)}"


def _group(blocked: Iterable[Blocked]) -> Iterator[tuple[str, str, list[ObjectRef]]]:
    """Group blocked objects of one kind with the same text."""
    groups: dict[tuple[str, str, str], list[ObjectRef]] = {}
    for each in blocked:
        text = f"{each.reason}: {each.facts.text()}"
        word = _WAITING if each.is_waiting else _BLOCKED
        groups.setdefault((word, text, each.object.kind), []).append(each.object)
    for (word, text, _), refs in groups.items():
        yield word, text, refs


def _word(blocked: Blocked) -> str:
    if blocked.reason == EngineReason.NEEDS_APPROVAL:
        return _HELD
    return _WAITING if blocked.is_waiting else _BLOCKED


def _blocked(word: str, text: str, refs: Sequence[ObjectRef], width: int) -> Iterator[str]:
    names = [str(refs[0]), *(str(ref).removeprefix(f"{ref.kind} ") for ref in refs[1:NAMED])]
    if len(refs) > NAMED:
        names.append(f"and {len(refs) - NAMED} more")
    yield from paragraph(f"{word} {', '.join(names)}", 2, width, hang=2)
    yield from paragraph(text, 4, width, hang=2)


def _summary(plan: Plan) -> str:
    # An object may be blocked for several reasons.
    by_word = {_word(each): set[ObjectRef]() for each in plan.blocked}
    for each in plan.blocked:
        by_word[_word(each)].add(each.object)
    held, waits, blocked = (len(by_word.get(word, ())) for word in (_HELD, _WAITING, _BLOCKED))
    parts = [counted(len(plan.actions), "action")] if plan.actions else []
    if waiting := sum(bool(action.after) for action in plan.actions):
        parts.append(f"{waiting} waiting for other actions")
    if any(map(is_disruptive, plan.actions)):
        parts.append(f"{describe_disturbed(plan.actions, in_all=False)} disrupted")
    if held:
        parts.append(f"{counted(held, 'object')} held for approval")
    if not parts:
        parts.append("nothing to do now" if waits else "nothing to do")
    if waits:
        parts.append(f"{counted(waits, 'object')} waiting")
    parts.append(f"{counted(blocked, 'object')} blocked" if blocked else "nothing blocked")
    return ", ".join(parts)
