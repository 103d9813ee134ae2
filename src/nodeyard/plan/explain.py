"""Text of a decision: `nodeyard why`.

The text gives the rule that applied, each candidate that was selected or not with its reason, and what would change the
decision. Candidates with the same reason text are grouped; the first are named and the rest counted.

An `Answer` adds what else is known of the object: adverse conditions, a held plan, an operator that does not run. These
notes come first. They hide a rule that says that all is well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from nodeyard.kube.conditions import FALSE, TRUE, UNKNOWN
from nodeyard.kube.objects import Condition
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Blocked, Candidate, Decision
from nodeyard.plan.reasons import EngineReason
from nodeyard.plan.style import BLANK, PLAIN, Line, Role, Style

HELD_TYPE: Final = "Held"
NEGATIVE: Final = frozenset(
    {HELD_TYPE, "Observing", "Stale", "Blocked", "Surplus", "Stalled", "Degraded", "Paused", "NetworkUnavailable"}
)
"""Condition types with negative polarity. All others are bad when False, as the API conventions advise."""
NEUTRAL: Final = frozenset(
    {"Progressing", "Reconciling", "Deleting", "DisruptionTarget", "ReleasesOnly"}
    | {"RollingOut", "ScalingUp", "ScalingDown", "Remediating", "Updating"}
)
"""Condition types that are neither good nor bad; the second row is Cluster API's."""
CANDIDATES: Final = 20
"""Number of selected candidates, and of others, that are named."""


@dataclass(frozen=True)
class Answer:
    """The answer of one capability to `nodeyard why` about one object."""

    by: str
    decision: Decision
    notes: tuple[tuple[str, str], ...] = ()
    """Reasons and texts shown before the decision's rule."""
    hides_rule: bool = False
    """True if the rule says that all is well and a note contradicts it."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons that the answer gives for the object as a whole, in order."""
        return (*(reason for reason, _ in self.notes), *(() if self.hides_rule else (self.decision.rule,)))


def compose(
    by: str,
    decision: Decision,
    *,
    fine: Collection[str] = (),
    conditions: Iterable[Condition] = (),
    generation: int = 0,
    held: Blocked | None = None,
    pause: Blocked | None = None,
    is_served: bool = True,
) -> Answer:
    """Combine a decision with the object's conditions, a held or paused plan, and whether an operator runs the
    capability.

    `fine` lists the reasons that say that all is well.
    """
    notes = []
    if not is_served:
        below = "" if decision.rule in fine else "; below is what it would decide"
        text = f"no operator runs {by} on this cluster, so nothing is done{below}"
        notes.append((EngineReason.NOT_SERVED.value, text))
    if pause is not None:
        notes.append((pause.reason, pause.facts.text()))
    if held is not None:
        notes.append((held.reason, held.facts.text()))
    for each in conditions:
        # The decision repeats its own reason, unless that says that all is well; the held plan is in the notes already.
        is_repeated = each.reason == decision.rule and each.reason not in fine
        is_held = held is not None and (each.type == HELD_TYPE or each.message == held.facts.text())
        if not is_adverse(each) or is_repeated or is_held:
            continue
        late = generation > each.observed_generation > 0
        when = f" (observed at generation {each.observed_generation}; the spec is at {generation})" if late else ""
        message = each.message.rstrip(".") or "no message"
        notes.append((each.reason or each.type, f"{message}; {each.type} is {each.status}{when}"))
    return Answer(by, decision, tuple(notes), hides_rule=bool(notes) and decision.rule in fine)


def is_adverse(condition: Condition) -> bool:
    """Return True if the condition reports a problem."""
    if condition.type in NEUTRAL:
        return False
    if condition.type in NEGATIVE or condition.type.endswith("Pressure"):
        return condition.status == TRUE
    return condition.status in (FALSE, UNKNOWN)


def render_answers(answers: Iterable[Answer], style: Style = PLAIN, *, candidates: int = CANDIDATES) -> str:
    """Render several answers, each with its capability."""
    ordered = sorted(answers, key=lambda each: (each.by, str(each.decision.object), each.decision.rule))
    return "\n".join(_render(each, candidates, style) for each in ordered)


def _render(answer: Answer, candidates: int, style: Style) -> str:
    return style.paint(_lines(answer, candidates, style))


def _lines(answer: Answer, candidates: int, style: Style) -> Iterator[Line]:
    decision = answer.decision
    yield Role.TITLE, f"{decision.object} ({answer.by})" if answer.by else str(decision.object)
    for reason, text in answer.notes:
        yield from style.paragraph(f"{reason}: {text}", 2, Role.BLOCKED)
    if not answer.hides_rule:
        yield from style.paragraph(f"{decision.rule}: {decision.facts.text()}", 2)
    selected = [each for each in decision.candidates if each.is_taken]
    others = [each for each in decision.candidates if not each.is_taken]
    yield from _candidates("selected", selected, candidates, style)
    yield from _candidates("not selected", others, candidates, style)
    if decision.would_change:
        yield BLANK
        yield Role.TITLE, "  What would change it:"
        for each in decision.would_change:
            yield from style.paragraph(f"- {each.text()}", 4)


def _candidates(word: str, candidates: Sequence[Candidate], most: int, style: Style) -> Iterator[Line]:
    if not candidates:
        return
    yield BLANK
    yield Role.TITLE, f"  {counted(len(candidates), 'candidate')} {word}:"
    shown = candidates if style.is_full else candidates[:most]
    groups: dict[str, list[str]] = {}
    for each in shown:
        text = f"{each.reason}: {each.facts.text()}"
        groups.setdefault(text, []).append(each.name)
    role = Role.ADDED if candidates[0].is_taken else Role.PLAIN
    for text, names in groups.items():
        yield from style.paragraph(f"{', '.join(names)}: {text}", 4, role)
    if len(candidates) > len(shown):
        rest = _count_reasons(candidates[len(shown) :])
        yield from style.paragraph(f"and {len(candidates) - len(shown)} more: {rest}", 4, Role.QUIET)


def _count_reasons(candidates: Sequence[Candidate]) -> str:
    counts: dict[str, int] = {}
    for each in candidates:
        counts[each.reason] = counts.get(each.reason, 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered)
