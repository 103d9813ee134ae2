"""Answers to "why" in wire form: sentence, ladder of rules, candidates by requirement, and what would change it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from nodeyard.dashboard.wire import CandidateRow, Change, Note, Step, WhyAnswer
from nodeyard.kube.objects import Condition
from nodeyard.plan.explain import Answer
from nodeyard.plan.model import Decision
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.surface import Rung, Surface
from nodeyard.watch.view import CacheView

CANDIDATES: Final = 500
_COMMAND: Final = re.compile(r"`((?:kubectl|nodeyard) [^`]+)`")


def to_wire(
    answer: Answer,
    capability: Capability,
    view: CacheView,
    conditions: Iterable[Condition] = (),
    most: int | None = CANDIDATES,
) -> WhyAnswer:
    """Return an answer as the page shows it. `conditions` are those of the decision's object."""
    decision, surface = answer.decision, capability.surface or Surface()
    sentence = answer.notes[0][1] if answer.hides_rule else decision.facts.text()
    reason = answer.notes[0][0] if answer.hides_rule else decision.rule
    rejected = [each.reason for each in decision.candidates if not each.is_taken]
    return WhyAnswer(
        by=answer.by,
        object=decision.object,
        sentence=sentence,
        reason=reason,
        since=surface.since(view, decision) or _since(reason, conditions),
        notes=tuple(Note(reason=each, message=text) for each, text in answer.notes),
        ladder=ladder(surface.ladders.get(decision.object.kind, ()), decision.rule),
        requirements=tuple(dict.fromkeys(rejected)),
        candidates=tuple(
            CandidateRow(
                name=each.name,
                is_taken=each.is_taken,
                reason=each.reason,
                message=each.facts.text(),
                failed=None if each.is_taken else each.reason,
            )
            for each in sorted(decision.candidates, key=lambda each: not each.is_taken)[:most]
        ),
        total=len(decision.candidates),
        would_change=(*_approvals(answer), *_would_change(decision, surface, view)),
    )


def ladder(rungs: Sequence[Rung], rule: str) -> tuple[Step, ...]:
    """Return the rungs up to the one that decided as passed; empty if the rule is none of them."""
    place = next((place for place, rung in enumerate(rungs) if rung.reason == rule), None)
    if place is None:
        return ()
    return tuple(
        Step(
            reason=rung.reason,
            title=rung.title,
            state="passed" if each < place else "decided" if each == place else "notReached",
        )
        for each, rung in enumerate(rungs)
    )


def _since(reason: str, conditions: Iterable[Condition]) -> datetime | None:
    return next((each.last_transition_time for each in conditions if each.reason == reason), None)


def _approvals(answer: Answer) -> list[Change]:
    """Return the approval of a held plan: nothing else moves the object until then."""
    commands = [_command_in(text) for reason, text in answer.notes if reason == EngineReason.NEEDS_APPROVAL]
    return [Change(message="Approve the held plan", command=each) for each in dict.fromkeys(commands) if each]


def _would_change(decision: Decision, surface: Surface, view: CacheView) -> tuple[Change, ...]:
    if remedies := surface.remedies(view, decision):
        return tuple(
            Change(message=each.message, command=each.command or _command_in(each.message)) for each in remedies
        )
    texts = [each.text() for each in decision.would_change]
    return tuple(Change(message=text, command=_command_in(text)) for text in texts)


def _command_in(text: str) -> str:
    """Return the command that a sentence quotes; empty if it has a placeholder or there is none."""
    found = _COMMAND.search(text)
    return "" if found is None or "<" in found[1] else found[1]
