"""Plans as Markdown for a pull request: `nodeyard plan -o markdown`.

One table per plan, then the changed fields in a fold. Equal actions are one row. The text stays below the size that
GitHub accepts for a comment: changed fields are left out first, then plans. Names and messages come from the cluster
and are escaped: they add no markup and mention nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nodeyard.plan.brake import describe_disrupted, is_disruptive
from nodeyard.plan.groups import ActionGroup, BlockedGroup, group_actions, group_blocked, group_plans, is_held
from nodeyard.plan.layout import counted
from nodeyard.plan.message import listed
from nodeyard.plan.model import Plan
from nodeyard.plan.render import HELD, TEXTS, describe_objects, render_diff, summarize
from nodeyard.plan.style import PLAIN, Role, Style, clean

MARKER: Final = "<!-- nodeyard plan -->"
"""The first line: a workflow finds its earlier comment by it."""
SIZE: Final = 60_000
"""GitHub accepts 65,536 characters."""
_CODE: Final = re.compile(r"(`[^`|\n]{1,80}`)")
_SPECIAL: Final = re.compile(r"([\\`*_\[\]|#~&])")


def render_markdown(plans: Iterable[Plan], headline: str = "", style: Style = PLAIN) -> str:
    """Render several plans, ordered by capability and key. `headline` names the running operator."""
    ordered = sorted(plans, key=lambda each: (each.capability, each.key))
    busy = [plan for plan in ordered if plan.actions or plan.blocked]
    text = f"{MARKER}\n### Nodeyard plan\n\n**{summarize(busy).capitalize() if busy else 'Nothing to do'}.**\n"
    if headline:
        text += f"\n{escape(headline)}\n"
    sections = [[each] for each in busy] if style.is_full else group_plans(busy)
    parts = [_section(each, style) for each in sections]
    if style.is_full or len(text) + sum(len(table) + len(diff) for table, diff in parts) <= SIZE:
        return text + "".join(table + diff for table, diff in parts)
    shown = 0
    for table, _ in parts:
        if len(text) + len(table) > SIZE:
            break
        text += table
        shown += 1
    left_out = f" and {counted(len(parts) - shown, 'plan')}" if shown < len(parts) else ""
    return f"{text}\nToo long for a comment: the changed fields{left_out} are left out; `nodeyard plan` shows them.\n"


def _section(plans: Sequence[Plan], style: Style) -> tuple[str, str]:
    """Return the table of plans that do the same things, and their changed fields."""
    groups = group_actions(plans, is_folded=not style.is_full)
    lines = ["", f"#### {escape(plans[0].capability)} {escape(listed([plan.key for plan in plans]))}", ""]
    blocked = group_blocked(plans)
    for refusal in filter(is_held, blocked):
        texts = list(refusal.by_text)
        lines += [f"> {escape(text)}\n" for text in (texts if style.is_full else texts[:HELD])]
        if len(texts) > HELD and not style.is_full:
            lines += [f"> and {counted(len(texts) - HELD, 'more held plan')}: `nodeyard approve` lists them\n"]
    if groups or not all(map(is_held, blocked)):
        lines += ["| action | objects | reason | disruption |", "|---|---|---|---|"]
        lines += map(_action_row, groups)
        lines += (_blocked_row(each) for each in blocked if not is_held(each))
    diff = list(_diff(groups, style))
    return "\n".join(lines) + "\n", "\n".join(diff) + "\n" if diff else ""


def _action_row(group: ActionGroup) -> str:
    first, refs = group.first, [action.object for action in group.actions]
    disruption = ""
    if is_disruptive(first):
        disruption = f"**{first.disruption.value}** {describe_disrupted(group.actions, in_all=False)}"
    objects = escape(describe_objects(refs))
    return f"| {first.verb.value} | {objects} | {_reason(first.reason, group.messages())} | {disruption} |"


def _blocked_row(group: BlockedGroup) -> str:
    objects = escape(describe_objects(group.objects))
    return f"| {group.word} | {objects} | {_reason(group.reason, list(group.by_text))} | |"


def _reason(reason: str, texts: Sequence[str]) -> str:
    more = f"<br>and {counted(len(texts) - TEXTS, 'more message')}" if len(texts) > TEXTS else ""
    return f"**{escape(reason)}**: {'<br>'.join(map(escape, texts[:TEXTS]))}{more}"


def _diff(groups: Iterable[ActionGroup], style: Style) -> Iterator[str]:
    lines = []
    for group in groups:
        if changes := list(render_diff(group, style, indent="")):
            objects = describe_objects([action.object for action in group.actions])
            lines += [(Role.PLAIN, f"@@ {group.first.verb.value} {objects} @@"), *changes]
    if not lines:
        return
    # "!" is the colour of changed lines in a diff block.
    content = style.paint((role, f"!{text[1:]}" if role is Role.CHANGED else text) for role, text in lines)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", content)), 3)
    yield from ("", "<details><summary>Changed fields</summary>", "", f"{fence}diff", content.rstrip("\n"))
    yield from (fence, "", "</details>")


def escape(text: str) -> str:
    """Escape what Markdown or HTML would interpret. Commands in backquotes stay code."""
    parts = _CODE.split(clean(" ".join(text.split())))
    return "".join(part if number % 2 else _escape(part) for number, part in enumerate(parts))


def _escape(text: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", text).replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("@", "@\N{ZERO WIDTH SPACE}")
