"""How a pass ends for an object: what failed, what is refused, and else what is observed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.affinity.messages import text
from nodeyard.kube.conditions import FALSE, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import Blocked

_BAD: Final = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def said(kind: str, status: str, reason: str, facts: Object) -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=text(reason, facts))


def failure(kind: str, outcome: Outcome) -> Condition | None:
    """The first write that did not succeed, as a condition of this type."""
    for each in outcome.results:
        if each.result in _BAD:
            message = f"{each.action.object}: {each.message}"
            return Condition(type=kind, status=FALSE, reason=f"{each.action.reason}Failed", message=message)
    return None


def refusal(kind: str, blocked: Sequence[Blocked], notices: frozenset[str]) -> Condition | None:
    """The first thing that is refused and more than a notice."""
    found = next((each for each in blocked if each.reason not in notices), None)
    return None if found is None else said(kind, FALSE, found.reason, found.facts)


def with_all(
    present: tuple[Condition, ...], wanted: Iterable[Condition], generation: int, now: datetime
) -> tuple[Condition, ...]:
    for condition in wanted:
        observed = msgspec.structs.replace(condition, observed_generation=generation)
        present = with_condition(present, observed, now)
    return present
