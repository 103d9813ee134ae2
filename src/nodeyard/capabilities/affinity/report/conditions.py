"""Conditions from the outcome of a reconcile: failed writes, refusals, and else the observed state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.kube.conditions import FALSE, with_condition
from nodeyard.kube.objects import Condition
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked

_BAD: Final = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def make_condition(kind: str, status: str, message: Message) -> Condition:
    return Condition(type=kind, status=status, reason=message.reason, message=message.text())


def failure_condition(kind: str, outcome: Outcome) -> Condition | None:
    """Return the first failed write as a condition of this type."""
    for each in outcome.results:
        if each.result in _BAD:
            message = f"{each.action.object}: {each.message}"
            return Condition(type=kind, status=FALSE, reason=f"{each.action.reason}Failed", message=message)
    return None


def refusal_condition(kind: str, blocked: Sequence[Blocked], notices: frozenset[str]) -> Condition | None:
    """Return the first refusal that is not a notice as a condition of this type."""
    found = next((each for each in blocked if each.reason not in notices), None)
    return None if found is None else make_condition(kind, FALSE, found.facts)


def set_conditions(
    present: tuple[Condition, ...], wanted: Iterable[Condition], generation: int, now: datetime
) -> tuple[Condition, ...]:
    for condition in wanted:
        observed = msgspec.structs.replace(condition, observed_generation=generation)
        present = with_condition(present, observed, now)
    return present
