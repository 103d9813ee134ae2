"""What the webhook server measures of itself. Labels are bound once, per webhook."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from nodeyard.process.metrics import Metrics
from nodeyard.runtime.webhooks import Found, LookedUp, Unreadable


class Ended(Enum):
    """How a review ended; the label of a metric."""

    ALLOWED = "allowed"
    PATCHED = "patched"
    DENIED = "denied"
    NOT_SYNCED = "not_synced"
    ERROR = "error"
    MALFORMED = "malformed"


class AdmissionMetrics:
    """The series of all webhooks; made once per process."""

    def __init__(self, metrics: Metrics) -> None:
        self._reviews = metrics.counter(
            "nodeyard_webhook_reviews_total",
            "Requests that webhooks were asked about, by answer.",
            ("webhook", "verdict"),
        )
        self._seconds = metrics.histogram(
            "nodeyard_webhook_review_seconds", "Time from a question that is read to its answer.", ("webhook",)
        )
        self.expiry = metrics.gauge(
            "nodeyard_webhook_certificate_expiry_seconds", "When the certificate served runs out, as Unix time."
        )
        self.registrations = metrics.counter(
            "nodeyard_webhook_registrations_total", "Webhook configurations written, by why.", ("capability", "reason")
        )

        self._lookups = metrics.counter(
            "nodeyard_webhook_lookups_total",
            "Objects that reviews had to read from the API server, by what became of it.",
            ("webhook", "result"),
        )

    def lookups_of(self, webhook: str) -> Callable[[LookedUp], None]:
        """Tell it each answer."""

        def told(answer: LookedUp) -> None:
            self._lookups.labels(webhook, _result(answer)).inc()

        return told

    def of(self, webhook: str) -> Callable[[Ended, float], None]:
        """Tell it how each review ended and how long it took."""
        seconds = self._seconds.labels(webhook)
        counts = {ended: self._reviews.labels(webhook, ended.value) for ended in Ended}

        def told(ended: Ended, took: float) -> None:
            counts[ended].inc()
            seconds.observe(took)

        return told


def _result(answer: LookedUp) -> str:
    if isinstance(answer, Unreadable):
        return answer.cause.value
    return "found" if isinstance(answer, Found) else "missing"
