"""Answers the requests of one webhook: decodes the request, calls the capability's review, encodes the response.

not synced   follows the failure policy: Ignore allows with a warning, Fail denies. An incomplete cache would deny
             valid requests.
lookup       reads the objects and calls the review again, until it decides or the deadline passes. Objects that were
             not read by then are Unreadable. Only this case is asynchronous.
too deep     denies: the operator could not decode the object either.
raises       500, so that the API server applies the failure policy; the error is logged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from nodeyard.admission import review_codec
from nodeyard.admission.metrics import AdmissionMetrics, ReviewOutcome
from nodeyard.plan.model import ObjectRef
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability, View
from nodeyard.runtime.webhooks import (
    AdmissionRequest,
    AdmissionResponse,
    LookedUp,
    Lookup,
    Unreadable,
    Webhook,
    allowed,
    denied,
)

OK: Final = 200
BAD_REQUEST: Final = 400
TOO_LARGE: Final = 413
UNPROCESSABLE: Final = 422
INTERNAL_ERROR: Final = 500
UNAVAILABLE: Final = 503
# The share of a webhook's timeout that is reserved for the network.
MARGIN: Final = 0.2
# Bounds the work that one object with many owners can cause.
MAX_LOOKUPS: Final = 64
MAX_ROUNDS: Final = 32

_log = get_logger("admission")


class ReviewingController(Protocol):
    """The parts of a running capability that admission needs."""

    @property
    def capability(self) -> Capability: ...

    @property
    def view(self) -> View: ...

    @property
    def is_synced(self) -> bool: ...

    def record_review(self, request: AdmissionRequest, response: AdmissionResponse) -> None: ...


class ObjectReader(Protocol):
    """Reads objects from the API server."""

    async def find(
        self, refs: Iterable[ObjectRef], deadline: float, *, is_trial: bool = False
    ) -> dict[ObjectRef, LookedUp]: ...


@dataclass(frozen=True)
class Answer:
    """An HTTP response."""

    status: int
    body: bytes


class Reviewer:
    def __init__(
        self, controller: ReviewingController, webhook: Webhook, metrics: AdmissionMetrics, lookups: ObjectReader
    ) -> None:
        name = controller.capability.name
        self.path = webhook.path(name)
        self._name = webhook.full_name(name)
        self._controller = controller
        self._webhook = webhook
        self._lookups = lookups
        self._deep = asyncio.Semaphore(1)
        self._record = metrics.of(self._name)
        self._count_lookup = metrics.lookups_of(self._name)

    def answer(self, body: bytes) -> Answer | Coroutine[Any, Any, Answer]:
        """Answer a request; never raises. The result is a coroutine only for lookups and deeply nested bodies."""
        began = time.perf_counter()
        try:
            review = review_codec.read(body)
        except RecursionError:
            return self._answer_deep(body, began)
        except review_codec.NotAReview as error:
            return self._reject(error, began)
        return self._answer_review(review, began)

    async def _answer_deep(self, body: bytes, began: float) -> Answer:
        """Decode in a thread, one body at a time: cutting deep parts takes a hundred times longer than decoding."""
        try:
            async with self._deep:
                review = await asyncio.to_thread(review_codec.read_deep, body)
        except review_codec.NotAReview as error:
            return self._reject(error, began)
        except review_codec.TooDeep as error:
            self._record(ReviewOutcome.DENIED, time.perf_counter() - began)
            return Answer(OK, review_codec.encode(error.review, _answer_too_deep(error)))
        answer = self._answer_review(review, began)
        return answer if isinstance(answer, Answer) else await answer

    def _reject(self, error: review_codec.NotAReview, began: float) -> Answer:
        self._record(ReviewOutcome.MALFORMED, time.perf_counter() - began)
        return Answer(TOO_LARGE if isinstance(error, review_codec.TooLarge) else BAD_REQUEST, str(error).encode())

    def _answer_review(self, review: AdmissionRequest, began: float) -> Answer | Coroutine[Any, Any, Answer]:
        if not self._controller.is_synced:
            self._record(ReviewOutcome.NOT_SYNCED, time.perf_counter() - began)
            return Answer(OK, review_codec.encode(review, self._answer_unsynced()))
        try:
            result = self._webhook.review(review, self._controller.view)
            if isinstance(result, Lookup):
                return self._search(review, result, began)
            return self._respond(review, result, began)
        except Exception as error:
            return self._fail(review, error, began)

    async def _search(self, review: AdmissionRequest, lookup: Lookup, began: float) -> Answer:
        deadline = asyncio.get_running_loop().time() + self._webhook.timeout_seconds * (1 - MARGIN)
        try:
            for _ in range(MAX_ROUNDS):
                review = await self._look_up(review, lookup, deadline)
                result = self._webhook.review(review, self._controller.view)
                if not isinstance(result, Lookup):
                    return self._respond(review, result, began)
                lookup = result
            raise RuntimeError(f"the review has not decided after {MAX_ROUNDS} rounds")
        except Exception as error:
            return self._fail(review, error, began)

    async def _look_up(self, review: AdmissionRequest, lookup: Lookup, deadline: float) -> AdmissionRequest:
        fresh = [ref for ref in dict.fromkeys(lookup.refs) if ref not in review.answers]
        if not fresh:
            raise RuntimeError(f"the review looks up {lookup.refs[0]} again, which was already answered")
        room = max(0, MAX_LOOKUPS - len(review.answers))
        found = await self._lookups.find(fresh[:room], deadline, is_trial=review.dry_run) if room else {}
        for answer in found.values():
            self._count_lookup(answer)
        left = Unreadable(f"not looked up: the review needs more than {MAX_LOOKUPS} objects")
        return msgspec.structs.replace(review, answers={**review.answers, **found, **dict.fromkeys(fresh[room:], left)})

    def _respond(self, review: AdmissionRequest, response: AdmissionResponse, began: float) -> Answer:
        answer = Answer(OK, review_codec.encode(review, response))
        self._record(_outcome(response), time.perf_counter() - began)
        if not review.dry_run:
            self._follow_up(review, response)
        return answer

    def _follow_up(self, review: AdmissionRequest, response: AdmissionResponse) -> None:
        try:
            self._controller.record_review(review, response)
        except Exception:
            # Metrics and Events must not change the answer.
            _log.exception("admission event dropped", webhook=self._name, **_log_keys(review))

    def _fail(self, review: AdmissionRequest, error: Exception, began: float) -> Answer:
        _log.error("admission review failed", webhook=self._name, exc_info=error, **_log_keys(review))
        self._record(ReviewOutcome.ERROR, time.perf_counter() - began)
        return Answer(INTERNAL_ERROR, f"{self._name}: {type(error).__name__}: {error}".encode())

    def _answer_unsynced(self) -> AdmissionResponse:
        if self._webhook.failure_policy == "Ignore":
            return allowed(f"{self._name}: not checked: nodeyard has just started and its caches are not synced yet")
        return denied(
            "nodeyard has just started and its caches are not synced yet; try again in a few seconds",
            code=UNAVAILABLE,
            reason="ServiceUnavailable",
        )


def _answer_too_deep(error: review_codec.TooDeep) -> AdmissionResponse:
    review = error.review
    ref = ObjectRef(api_version="", kind=review.kind.kind, name=review.name, namespace=review.namespace)
    message = f"{ref}: {error}, which nodeyard cannot decode; reduce the nesting"
    return denied(message, code=UNPROCESSABLE, reason="Invalid")


def _outcome(response: AdmissionResponse) -> ReviewOutcome:
    if not response.is_allowed:
        return ReviewOutcome.DENIED
    return ReviewOutcome.ALLOWED if response.object is None else ReviewOutcome.PATCHED


def _log_keys(review: AdmissionRequest) -> dict[str, str]:
    """Return log keys of a request. Objects are never logged, because they may hold secrets."""
    resource = f"{review.resource.resource}.{review.resource.group}".rstrip(".")
    return {
        "operation": review.operation,
        "resource": resource,
        "namespace": review.namespace,
        "name": review.name,
        "user": review.user.username,
    }
