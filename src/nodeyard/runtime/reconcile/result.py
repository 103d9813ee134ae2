"""The result of a reconcile: how it ended, and when its key is requeued. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.plan.model import Plan


class Ending(Enum):
    """End of a reconcile; also the label value of a metric."""

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
"""Endings that are retried with backoff."""


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    ending: Ending
    requeue_after: float | None = None
    """Seconds until the plan may change without an event; None if it cannot."""
    retry_after: float = 0.0
    """Retry-After of the server, the least wait before a retry."""


def result_of(plan: Plan, outcome: Outcome, now: datetime, denied_retry: float) -> ReconcileResult:
    """Return the result of a pass: the worst action result decides."""
    found = {each.result for each in outcome.results}
    retry_after = max((each.retry_after for each in outcome.results), default=0.0)
    requeue = requeue_after(plan, now)
    if found & {Result.FAILED, Result.UNKNOWN}:
        return ReconcileResult(Ending.FAILED, requeue, retry_after)
    if Result.CONFLICT in found:
        return ReconcileResult(Ending.CONFLICT, requeue, retry_after)
    if Result.DENIED in found:
        return ReconcileResult(Ending.DENIED, denied_retry if requeue is None else min(requeue, denied_retry))
    if Result.HELD in found:
        return ReconcileResult(Ending.HELD, requeue)
    return ReconcileResult(Ending.SETTLED, requeue)


def requeue_after(plan: Plan, now: datetime) -> float | None:
    return None if plan.wake_at is None else max(0.0, (plan.wake_at - now).total_seconds())
