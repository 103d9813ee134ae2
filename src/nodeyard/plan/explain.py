"""A decision as prose: `nodeyard why`.

The rule that applied, every candidate taken or left and for what reason, and what would change it. Candidates that were
left for the same reason in the same words stand together; of very many the first are named and the rest counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from nodeyard.plan.layout import WIDTH, counted, paragraph
from nodeyard.plan.model import Candidate, Decision
from nodeyard.plan.reasons import Messages, text_of

CANDIDATES: Final = 20
"""How many of those taken, and of those left, are named."""


def render_why(
    decisions: Iterable[tuple[str, Decision, Messages]], *, candidates: int = CANDIDATES, width: int = WIDTH
) -> str:
    """Several answers, each with the capability that gives it."""
    ordered = sorted(decisions, key=lambda each: (each[0], str(each[1].object), each[1].rule))
    texts = [render_decision(one, messages, by, candidates=candidates, width=width) for by, one, messages in ordered]
    return "\n".join(texts)


def render_decision(
    decision: Decision, messages: Messages, by: str = "", *, candidates: int = CANDIDATES, width: int = WIDTH
) -> str:
    title = f"{decision.object} ({by})" if by else str(decision.object)
    lines = [title, *_reason(decision.rule, text_of(messages, decision.rule, decision.facts), 2, width)]
    taken = [each for each in decision.candidates if each.is_taken]
    left = [each for each in decision.candidates if not each.is_taken]
    lines += _candidates("taken", taken, messages, candidates, width)
    lines += _candidates("left", left, messages, candidates, width)
    if decision.would_change:
        lines += ["", "  What would change it:"]
        for reason in decision.would_change:
            lines += paragraph(f"- {text_of(messages, reason, decision.facts)}", 4, width, hang=2)
    return "\n".join(lines) + "\n"


def _reason(reason: str, text: str, indent: int, width: int) -> Iterator[str]:
    return paragraph(f"{reason}: {text}", indent, width, hang=2)


def _candidates(word: str, those: Sequence[Candidate], messages: Messages, most: int, width: int) -> Iterator[str]:
    if not those:
        return
    yield ""
    yield f"  {counted(len(those), 'candidate')} {word}:"
    groups: dict[str, list[str]] = {}
    for each in those[:most]:
        text = f"{each.reason}: {text_of(messages, each.reason, each.facts)}"
        groups.setdefault(text, []).append(each.name)
    for text, names in groups.items():
        yield from paragraph(f"{', '.join(names)}: {text}", 4, width, hang=2)
    if len(those) > most:
        yield from paragraph(f"and {len(those) - most} more: {_tally(those[most:])}", 4, width, hang=2)


def _tally(those: Sequence[Candidate]) -> str:
    counts: dict[str, int] = {}
    for each in those:
        counts[each.reason] = counts.get(each.reason, 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered)
