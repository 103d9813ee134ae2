"""One webhook answering: reads the question, asks the capability, and answers in every case.

not synced   as the webhook's failure policy would have it, and with the reason: Ignore admits with a warning, Fail
             denies; deciding from a cache that has not been told everything would refuse what is right
raises       500, so that the API server applies the failure policy; the error is in the log
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final, Protocol

from nodeyard.admission import wire
from nodeyard.admission.metrics import AdmissionMetrics, Ended
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability, View
from nodeyard.runtime.webhooks import Review, Verdict, Webhook, allowed, denied

OK: Final = 200
BAD_REQUEST: Final = 400
INTERNAL_ERROR: Final = 500
UNAVAILABLE: Final = 503

_log = get_logger("admission")


class Controlled(Protocol):
    """A capability at work, as admission sees it."""

    @property
    def capability(self) -> Capability: ...

    @property
    def view(self) -> View: ...

    @property
    def is_synced(self) -> bool: ...


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    body: bytes


class Reviewer:
    def __init__(self, controlled: Controlled, webhook: Webhook, metrics: AdmissionMetrics) -> None:
        name = controlled.capability.name
        self.path = webhook.path(name)
        self._name = webhook.full_name(name)
        self._controlled = controlled
        self._webhook = webhook
        self._tell = metrics.of(self._name)

    def answer(self, body: bytes) -> Answer:
        """Never raises."""
        began = time.perf_counter()
        ended, answer = self._answer(body)
        self._tell(ended, time.perf_counter() - began)
        return answer

    def _answer(self, body: bytes) -> tuple[Ended, Answer]:
        try:
            review = wire.read(body)
        except wire.NotAReview as error:
            return Ended.MALFORMED, Answer(BAD_REQUEST, str(error).encode())
        if not self._controlled.is_synced:
            return Ended.NOT_SYNCED, Answer(OK, wire.answer(review, self._unsynced()))
        try:
            verdict = self._webhook.review(review, self._controlled.view)
            return _ended(verdict), Answer(OK, wire.answer(review, verdict))
        except Exception as error:
            _log.exception("review failed", webhook=self._name, **_named(review))
            return Ended.ERROR, Answer(INTERNAL_ERROR, f"{self._name}: {type(error).__name__}: {error}".encode())

    def _unsynced(self) -> Verdict:
        if self._webhook.failure_policy == "Ignore":
            return allowed(f"{self._name}: not checked: nodeyard has just started and does not know the cluster yet")
        return denied(
            "nodeyard has just started and does not know the cluster yet; try again in a few seconds",
            code=UNAVAILABLE,
            reason="ServiceUnavailable",
        )


def _ended(verdict: Verdict) -> Ended:
    if not verdict.is_allowed:
        return Ended.DENIED
    return Ended.ALLOWED if verdict.object is None else Ended.PATCHED


def _named(review: Review) -> dict[str, str]:
    """The request in a log line; never its objects, which may hold secrets."""
    resource = f"{review.resource.resource}.{review.resource.group}".rstrip(".")
    return {
        "operation": review.operation,
        "resource": resource,
        "namespace": review.namespace,
        "name": review.name,
        "user": review.user.username,
    }
