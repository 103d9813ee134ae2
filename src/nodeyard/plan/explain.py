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
from nodeyard.plan.layout import WIDTH, counted, paragraph
from nodeyard.plan.model import Blocked, Candidate, Decision
from nodeyard.plan.reasons import EngineReason

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
"""How many selected candidates, and how many others, are named."""


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
        # The decision repeats its own reason, and the held plan is already in the notes.
        if not is_adverse(each) or each.reason == decision.rule or (each.type == HELD_TYPE and held is not None):
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


def render_answers(answers: Iterable[Answer], *, candidates: int = CANDIDATES, width: int = WIDTH) -> str:
    """Render several answers, each with its capability."""
    ordered = sorted(answers, key=lambda each: (each.by, str(each.decision.object), each.decision.rule))
    return "\n".join(_render(each, candidates, width) for each in ordered)


def render_why(decisions: Iterable[tuple[str, Decision]], *, candidates: int = CANDIDATES, width: int = WIDTH) -> str:
    """Render several decisions without notes."""
    answers = [Answer(by, decision) for by, decision in decisions]
    return render_answers(answers, candidates=candidates, width=width)


def render_decision(decision: Decision, by: str = "", *, candidates: int = CANDIDATES, width: int = WIDTH) -> str:
    return _render(Answer(by, decision), candidates, width)


def _render(answer: Answer, candidates: int, width: int) -> str:
    decision = answer.decision
    lines = [f"{decision.object} ({answer.by})" if answer.by else str(decision.object)]
    for reason, text in answer.notes:
        lines += _reason(reason, text, 2, width)
    if not answer.hides_rule:
        lines += _reason(decision.rule, decision.facts.text(), 2, width)
    selected = [each for each in decision.candidates if each.is_taken]
    others = [each for each in decision.candidates if not each.is_taken]
    lines += _candidates("selected", selected, candidates, width)
    lines += _candidates("not selected", others, candidates, width)
    if decision.would_change:
        lines += ["", "  What would change it:"]
        for each in decision.would_change:
            lines += paragraph(f"- {each.text()}", 4, width, hang=2)
    return "\n".join(lines) + "\n"


def _reason(reason: str, text: str, indent: int, width: int) -> Iterator[str]:
    return paragraph(f"{reason}: {text}", indent, width, hang=2)


def _candidates(word: str, candidates: Sequence[Candidate], most: int, width: int) -> Iterator[str]:
    if not candidates:
        return
    yield ""
    yield f"  {counted(len(candidates), 'candidate')} {word}:"
    groups: dict[str, list[str]] = {}
    for each in candidates[:most]:
        text = f"{each.reason}: {each.facts.text()}"
        groups.setdefault(text, []).append(each.name)
    for text, names in groups.items():
        yield from paragraph(f"{', '.join(names)}: {text}", 4, width, hang=2)
    if len(candidates) > most:
        rest = _count_reasons(candidates[most:])
        yield from paragraph(f"and {len(candidates) - most} more: {rest}", 4, width, hang=2)


def _count_reasons(candidates: Sequence[Candidate]) -> str:
    counts: dict[str, int] = {}
    for each in candidates:
        counts[each.reason] = counts.get(each.reason, 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count} {reason}" for reason, count in ordered)
