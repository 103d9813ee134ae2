"""Text of plans: `nodeyard plan -o text`.

    spares nodetemplates (plan 5d0c2f7a91be)

      Patch 2 Nodes: n1, n2
        Claimed: claims the node for template web
        + metadata.labels[nyallocator.cybozu.io/node-template] "web"
        - spec.taints[node.cybozu.io/spare:NoSchedule]

    2 actions, nothing blocked

Equal actions are folded, plans without anything to do are only counted; `--full` shows everything. The text depends
only on the plans, so equal plans have equal texts. Rendering is linear in the plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nodeyard.plan.brake import describe_disrupted, disrupted_nodes, is_disruptive
from nodeyard.plan.groups import ActionGroup, BlockedGroup, group_actions, group_blocked, group_plans, is_held, sign
from nodeyard.plan.layout import counted, encode, format_value, pluralize
from nodeyard.plan.message import NAMED, listed
from nodeyard.plan.model import Action, Blocked, FieldChange, ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.plan.style import BLANK, PLAIN, Line, Role, Style

TEXTS: Final = 2
"""Number of different messages of equal actions, or of refusals for one reason, that are shown."""
HELD: Final = 20
"""Number of held plans that are shown; each has its own id to approve."""
_ROLES: Final = {"+": Role.ADDED, "-": Role.REMOVED, "~": Role.CHANGED}
_HELD, _WAITING, _BLOCKED = "Held", "Waiting", "Blocked"
_UNBOUND: Final = 1 << 30


def render_plans(plans: Iterable[Plan], style: Style = PLAIN) -> str:
    """Render several plans, ordered by capability and key."""
    ordered = sorted(plans, key=lambda each: (each.capability, each.key))
    if style.is_full:
        return "\n".join(render_plan(plan, style) for plan in ordered)
    busy = [plan for plan in ordered if plan.actions or plan.blocked]
    silent = len(ordered) - len(busy)
    if not busy:
        capabilities = ", ".join(dict.fromkeys(plan.capability for plan in ordered))
        return f"nothing to do in {counted(silent, 'plan')} of {capabilities}\n" if ordered else ""
    sections = group_plans(busy)
    texts = [style.paint(_section(each, style)) for each in sections]
    closing = [f"In all {counted(len(busy), 'plan')}: {summarize(busy)}"] if len(sections) > 1 else []
    closing += [f"nothing to do in {counted(silent, 'more plan')}"] if silent else []
    if closing:
        texts.append(style.paint(line for each in closing for line in style.paragraph(each, 0, Role.TITLE)))
    return "\n".join(texts)


def render_plan(plan: Plan, style: Style = PLAIN) -> str:
    if not plan.actions and not plan.blocked:
        return style.paint([(Role.QUIET, f"{plan.capability} {plan.key}: nothing to do")])
    return style.paint(_section([plan], style))


def _section(plans: Sequence[Plan], style: Style) -> Iterator[Line]:
    """Render plans of one capability that do the same things."""
    yield from style.paragraph(_title(plans), 0, Role.TITLE)
    for group in group_actions(plans, is_folded=not style.is_full):
        yield BLANK
        yield from _actions(group, style)
    for refused in group_blocked(plans):
        yield from _render_blocked(refused, style)
    yield BLANK
    yield from style.paragraph(summarize(plans), 0, Role.TITLE)


def _title(plans: Sequence[Plan]) -> str:
    first = plans[0]
    if len(plans) > 1:
        return f"{first.capability} {listed([plan.key for plan in plans])} ({len(plans)} plans)"
    return f"{first.capability} {first.key}" + (f" (plan {first.id})" if first.id and first.actions else "")


def _actions(group: ActionGroup, style: Style) -> Iterator[Line]:
    first = group.first
    role = Role.DISRUPTIVE if is_disruptive(first) else Role.TITLE
    yield from style.paragraph(f"{_headline(group)}{_disruption(group.actions)}", 2, role)
    yield from _messages(first.reason, group.messages(), style)
    for each in group.after.values():
        yield from style.paragraph(f"waits for {_headline(each, names=1)} ({each.first.reason})", 4, Role.QUIET)
    for id in group.unknown:
        yield from style.paragraph(f"waits for {id}", 4, Role.QUIET)
    yield from render_diff(group, style)


def render_diff(group: ActionGroup, style: Style, indent: str = "    ") -> Iterator[Line]:
    """Render the changed fields of equal actions once, with the number of other values."""
    for place, change in enumerate(group.first.diff):
        values = _count_values(group.actions, place)
        yield _ROLES[sign(change)], _change(change, values, style, indent)


def _headline(group: ActionGroup, names: int = NAMED) -> str:
    return f"{group.first.verb.value} {describe_objects([action.object for action in group.actions], names)}"


def describe_objects(refs: Sequence[ObjectRef], names: int = NAMED) -> str:
    """Return `Node n1`, or `7 Nodes: n1, n2, n3, n4, n5 and 2 more`."""
    if len(refs) == 1:
        return str(refs[0])
    shown = ", ".join(str(ref).removeprefix(f"{ref.kind} ") for ref in refs[:names])
    more = f" and {len(refs) - names} more" if len(refs) > names else ""
    return f"{len(refs)} {pluralize(refs[0].kind)}: {shown}{more}"


def _disruption(actions: Sequence[Action]) -> str:
    first = actions[0]
    if not is_disruptive(first):
        return ""
    mark = f"  ! {first.disruption.value}"
    if len(actions) == 1 and first.disrupts in ((), (first.object.name,)):
        return mark
    if len(actions) == 1 and len(first.disrupts) == 1:
        return f"{mark} (node {first.disrupts[0]})"
    nodes = len(disrupted_nodes(actions))
    is_plain = nodes == len(actions) and all(action.disrupts in ((), (action.object.name,)) for action in actions)
    return mark if is_plain else f"{mark} ({describe_disrupted(actions, in_all=False)})"


def _messages(reason: str, texts: Sequence[str], style: Style) -> Iterator[Line]:
    for text in texts[:TEXTS]:
        yield from style.paragraph(f"{reason}: {text}", 4)
    if len(texts) > TEXTS:
        yield from style.paragraph(f"and {counted(len(texts) - TEXTS, 'more message')} of this reason", 4, Role.QUIET)


def _count_values(actions: Sequence[Action], place: int) -> int:
    """Count the different changes of one field by equal actions."""
    if len(actions) == 1:
        return 1
    return len({encode((action.diff[place].from_, action.diff[place].to)) for action in actions})


def _change(change: FieldChange, values: int, style: Style, indent: str) -> str:
    more = f" and {counted(values - 1, 'other value')}" if values > 1 else ""
    start = f"{indent}{sign(change)} {change.path}"
    room = _UNBOUND if style.is_full else style.width - len(start) - 1 - len(more)
    if change.from_ is not None and change.to is not None:
        room -= len(" -> ")
        to = format_value(change.to, room // 2)
        from_ = format_value(change.from_, room - len(to))
        return f"{start} {from_} -> {format_value(change.to, room - len(from_))}{more}"
    value = change.to if change.from_ is None else change.from_
    return f"{start}{more}" if value == {} else f"{start} {format_value(value, room)}{more}"


def _render_blocked(group: BlockedGroup, style: Style) -> Iterator[Line]:
    texts = list(group.by_text)
    if style.is_full:
        shown, names = len(texts), _UNBOUND
    elif is_held(group):
        shown, names = HELD, NAMED
    else:
        shown, names = (len(texts) if len(texts) <= TEXTS else 0), NAMED
    for text in texts[:shown]:
        yield BLANK
        yield from _refusal(group, group.by_text[text], names, style)
        yield from style.paragraph(f"{group.reason}: {text}", 4)
    if len(texts) <= shown:
        return
    yield BLANK
    if is_held(group):
        text = f"and {counted(len(texts) - shown, 'more held plan')}: `nodeyard approve` lists them"
        yield from style.paragraph(text, 2, Role.BLOCKED)
        return
    yield from _refusal(group, group.objects, names, style)
    yield from _messages(group.reason, texts, style)


def _refusal(group: BlockedGroup, refs: Sequence[ObjectRef], names: int, style: Style) -> Iterator[Line]:
    role = Role.TITLE if group.word == _WAITING else Role.BLOCKED
    return style.paragraph(f"{group.word} {describe_objects(refs, names)}", 2, role)


def summarize(plans: Sequence[Plan]) -> str:
    """Return one line: `3 actions, 1 waiting for other actions, 1 node disrupted, nothing blocked`."""
    actions = [action for plan in plans for action in plan.actions]
    # An object may be blocked for several reasons.
    refused: dict[str, set[ObjectRef]] = {_HELD: set(), _WAITING: set(), _BLOCKED: set()}
    for plan in plans:
        for each in plan.blocked:
            refused[_word(each)].add(each.object)
    held, waits, blocked = map(len, refused.values())
    parts = [counted(len(actions), "action")] if actions else []
    if waiting := sum(bool(action.after) for action in actions):
        parts.append(f"{waiting} waiting for other actions")
    if any(map(is_disruptive, actions)):
        parts.append(f"{describe_disrupted(actions, in_all=False)} disrupted")
    if held:
        parts.append(f"{counted(held, 'object')} held for approval")
    if not parts:
        parts.append("nothing to do now" if waits else "nothing to do")
    if waits:
        parts.append(f"{counted(waits, 'object')} waiting")
    parts.append(f"{counted(blocked, 'object')} blocked" if blocked else "nothing blocked")
    return ", ".join(parts)


def _word(blocked: Blocked) -> str:
    if blocked.reason == EngineReason.NEEDS_APPROVAL:
        return _HELD
    return _WAITING if blocked.is_waiting else _BLOCKED
