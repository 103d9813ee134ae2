"""What the webhook server measures of itself. Labels are bound once, per webhook."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from nodeyard.process.metrics import Metrics


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

    def of(self, webhook: str) -> Callable[[Ended, float], None]:
        """Tell it how each review ended and how long it took."""
        seconds = self._seconds.labels(webhook)
        counts = {ended: self._reviews.labels(webhook, ended.value) for ended in Ended}

        def told(ended: Ended, took: float) -> None:
            counts[ended].inc()
            seconds.observe(took)

        return told
