"""What a pass means for its key: when it is looked at again. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.plan.model import Plan


class Ending(Enum):
    """How a pass ended; also the label of a metric."""

    SETTLED = "settled"
    GONE = "gone"
    PAUSED = "paused"
    NOT_LEADING = "not_leading"
    NOT_SYNCED = "not_synced"
    OBSERVED = "observed"
    CONFLICT = "conflict"
    DENIED = "denied"
    HELD = "held"
    FAILED = "failed"
    ERROR = "error"


RETRIED = frozenset({Ending.CONFLICT, Ending.FAILED, Ending.ERROR})
"""Those that are tried again with backoff."""


@dataclass(frozen=True, slots=True)
class Verdict:
    ending: Ending
    wake_after: float | None = None
    """Seconds until the plan may differ without an event."""
    at_least: float = 0.0
    """What the server asked us to wait before a retry."""


def verdict_of(plan: Plan, outcome: Outcome, now: datetime, denied_retry: float) -> Verdict:
    """The worst that happened decides."""
    found = {each.result for each in outcome.results}
    at_least = max((each.retry_after for each in outcome.results), default=0.0)
    wake = wake_after(plan, now)
    if found & {Result.FAILED, Result.UNKNOWN}:
        return Verdict(Ending.FAILED, wake, at_least)
    if Result.CONFLICT in found:
        return Verdict(Ending.CONFLICT, wake, at_least)
    if Result.DENIED in found:
        return Verdict(Ending.DENIED, denied_retry if wake is None else min(wake, denied_retry))
    if Result.HELD in found:
        return Verdict(Ending.HELD, wake)
    return Verdict(Ending.SETTLED, wake)


def wake_after(plan: Plan, now: datetime) -> float | None:
    return None if plan.wake_at is None else max(0.0, (plan.wake_at - now).total_seconds())
