"""One webhook answering: reads the question, asks the capability, and answers in every case.

not synced   as the webhook's failure policy would have it, and with the reason: Ignore admits with a warning, Fail
             denies; deciding from a cache that has not been told everything would refuse what is right
looks up     only then the answer is waited for: objects are read, and the capability is asked again, until it decides
             or the time is over; what was not read by then it is told as unreadable
too deep     denied: what cannot be read cannot be looked after
raises       500, so that the API server applies the failure policy; the error is in the log
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from nodeyard.admission import wire
from nodeyard.admission.metrics import AdmissionMetrics, Ended
from nodeyard.plan.model import ObjectRef
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability, View
from nodeyard.runtime.webhooks import LookedUp, Lookup, Review, Unreadable, Verdict, Webhook, allowed, denied

OK: Final = 200
BAD_REQUEST: Final = 400
UNPROCESSABLE: Final = 422
INTERNAL_ERROR: Final = 500
UNAVAILABLE: Final = 503
# What of a webhook's timeout is for the way there and back.
MARGIN: Final = 0.2
# However many owners somebody gives an object: more are not looked for in one review.
MOST_LOOKUPS: Final = 64
MOST_ROUNDS: Final = 32

_log = get_logger("admission")


class Controlled(Protocol):
    """A capability at work, as admission sees it."""

    @property
    def capability(self) -> Capability: ...

    @property
    def view(self) -> View: ...

    @property
    def is_synced(self) -> bool: ...

    def reviewed(self, review: Review, verdict: Verdict) -> None: ...


class Searching(Protocol):
    """Reads objects from the API server."""

    async def find(
        self, refs: Iterable[ObjectRef], deadline: float, *, is_trial: bool = False
    ) -> dict[ObjectRef, LookedUp]: ...


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    body: bytes


class Reviewer:
    def __init__(self, controlled: Controlled, webhook: Webhook, metrics: AdmissionMetrics, lookups: Searching) -> None:
        name = controlled.capability.name
        self.path = webhook.path(name)
        self._name = webhook.full_name(name)
        self._controlled = controlled
        self._webhook = webhook
        self._lookups = lookups
        self._tell = metrics.of(self._name)
        self._tell_lookup = metrics.lookups_of(self._name)

    def answer(self, body: bytes) -> Answer | Coroutine[Any, Any, Answer]:
        """Never raises; to be awaited only where something has to be looked up."""
        began = time.perf_counter()
        try:
            review = wire.read(body)
        except wire.NotAReview as error:
            self._tell(Ended.MALFORMED, time.perf_counter() - began)
            return Answer(BAD_REQUEST, str(error).encode())
        except wire.TooDeep as error:
            self._tell(Ended.DENIED, time.perf_counter() - began)
            return Answer(OK, wire.answer(error.review, _undecodable(error)))
        if not self._controlled.is_synced:
            self._tell(Ended.NOT_SYNCED, time.perf_counter() - began)
            return Answer(OK, wire.answer(review, self._unsynced()))
        try:
            said = self._webhook.review(review, self._controlled.view)
            if isinstance(said, Lookup):
                return self._search(review, said, began)
            return self._decided(review, said, began)
        except Exception as error:
            return self._failed(review, error, began)

    async def _search(self, review: Review, lookup: Lookup, began: float) -> Answer:
        deadline = asyncio.get_running_loop().time() + self._webhook.timeout_seconds * (1 - MARGIN)
        try:
            for _ in range(MOST_ROUNDS):
                review = await self._answered(review, lookup, deadline)
                said = self._webhook.review(review, self._controlled.view)
                if not isinstance(said, Lookup):
                    return self._decided(review, said, began)
                lookup = said
            raise RuntimeError(f"the review has not decided after {MOST_ROUNDS} rounds")
        except Exception as error:
            return self._failed(review, error, began)

    async def _answered(self, review: Review, lookup: Lookup, deadline: float) -> Review:
        fresh = [ref for ref in dict.fromkeys(lookup.refs) if ref not in review.answers]
        if not fresh:
            raise RuntimeError(f"the review asks again for {lookup.refs[0]}, which it was answered")
        room = max(0, MOST_LOOKUPS - len(review.answers))
        found = await self._lookups.find(fresh[:room], deadline, is_trial=review.dry_run) if room else {}
        for answer in found.values():
            self._tell_lookup(answer)
        left = Unreadable(f"not looked up: it is one of more than {MOST_LOOKUPS}")
        return msgspec.structs.replace(review, answers={**review.answers, **found, **dict.fromkeys(fresh[room:], left)})

    def _decided(self, review: Review, verdict: Verdict, began: float) -> Answer:
        answer = Answer(OK, wire.answer(review, verdict))
        self._tell(_ended(verdict), time.perf_counter() - began)
        if not review.dry_run:
            self._follow_up(review, verdict)
        return answer

    def _follow_up(self, review: Review, verdict: Verdict) -> None:
        try:
            self._controlled.reviewed(review, verdict)
        except Exception:
            # What is told about an answer does not change it.
            _log.exception("a review is not told of", webhook=self._name, **_named(review))

    def _failed(self, review: Review, error: Exception, began: float) -> Answer:
        _log.error("review failed", webhook=self._name, exc_info=error, **_named(review))
        self._tell(Ended.ERROR, time.perf_counter() - began)
        return Answer(INTERNAL_ERROR, f"{self._name}: {type(error).__name__}: {error}".encode())

    def _unsynced(self) -> Verdict:
        if self._webhook.failure_policy == "Ignore":
            return allowed(f"{self._name}: not checked: nodeyard has just started and does not know the cluster yet")
        return denied(
            "nodeyard has just started and does not know the cluster yet; try again in a few seconds",
            code=UNAVAILABLE,
            reason="ServiceUnavailable",
        )


def _undecodable(error: wire.TooDeep) -> Verdict:
    review = error.review
    ref = ObjectRef(api_version="", kind=review.kind.kind, name=review.name, namespace=review.namespace)
    return denied(f"{ref}: {error}, which cannot be read here; nest it less", code=UNPROCESSABLE, reason="Invalid")


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
