"""Metrics of the webhooks. Labels are bound once per webhook."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from nodeyard.process.metrics import Metrics
from nodeyard.runtime.webhooks import Found, LookedUp, Unreadable


class ReviewOutcome(Enum):
    """The outcome of a review; a label value."""

    ALLOWED = "allowed"
    PATCHED = "patched"
    DENIED = "denied"
    NOT_SYNCED = "not_synced"
    ERROR = "error"
    MALFORMED = "malformed"


class AdmissionMetrics:
    """Metrics of all webhooks; created once per process."""

    def __init__(self, metrics: Metrics) -> None:
        self._reviews = metrics.counter(
            "nodeyard_webhook_reviews_total",
            "Admission reviews, by webhook and response.",
            ("webhook", "response"),
        )
        self._seconds = metrics.histogram(
            "nodeyard_webhook_review_seconds", "Duration of an admission review.", ("webhook",)
        )
        self.expiry = metrics.gauge(
            "nodeyard_webhook_certificate_expiry_seconds", "Expiry of the serving certificate, as Unix time."
        )
        self.registrations = metrics.counter(
            "nodeyard_webhook_registrations_total",
            "Writes of webhook configurations, by reason.",
            ("capability", "reason"),
        )
        self._lookups = metrics.counter(
            "nodeyard_webhook_lookups_total",
            "Objects that reviews read from the API server, by result.",
            ("webhook", "result"),
        )

    def lookups_of(self, webhook: str) -> Callable[[LookedUp], None]:
        """Return a function that counts the answer of a lookup."""

        def count(answer: LookedUp) -> None:
            self._lookups.labels(webhook, _result(answer)).inc()

        return count

    def of(self, webhook: str) -> Callable[[ReviewOutcome, float], None]:
        """Return a function that records the outcome and duration of a review."""
        seconds = self._seconds.labels(webhook)
        counts = {outcome: self._reviews.labels(webhook, outcome.value) for outcome in ReviewOutcome}

        def record(outcome: ReviewOutcome, duration: float) -> None:
            counts[outcome].inc()
            seconds.observe(duration)

        return record


def _result(answer: LookedUp) -> str:
    if isinstance(answer, Unreadable):
        return answer.cause.value
    return "found" if isinstance(answer, Found) else "missing"
