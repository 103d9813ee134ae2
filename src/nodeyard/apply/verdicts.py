"""What an answer means for the action: ended, and how, or to be sent again."""

from __future__ import annotations

from typing import Final

import msgspec

from nodeyard.apply.outcome import ActionResult, Result
from nodeyard.apply.patience import asked_pause, is_trouble
from nodeyard.client.errors import AdmissionDenied, ClientError, Conflict, Invalid, NotFound, TooManyRequests
from nodeyard.kube.json import Json
from nodeyard.plan.model import Action, Verb

BUDGET_SECONDS: Final = 10.0
"""When to ask again for an eviction that a budget refuses, where the server does not say."""


class Again(msgspec.Struct, frozen=True):
    """Not carried out; worth another attempt."""

    message: str
    retry_after: float | None = None


Verdict = ActionResult | Again


def done(action: Action, answer: Json = None, message: str = "", version: str = "") -> ActionResult:
    return ActionResult(action=action, result=Result.DONE, answer=answer, message=message, version=version)


def ended(action: Action, result: Result, message: str, retry_after: float = 0.0) -> ActionResult:
    return ActionResult(action=action, result=result, message=message, retry_after=retry_after)


def verdict_of(action: Action, error: ClientError) -> Verdict:
    """The order matters: a denial may carry any code, and a budget's 429 is no overload."""
    message = str(error)
    if isinstance(error, AdmissionDenied):
        return ActionResult(action=action, result=Result.DENIED, message=message, denied_by=error.denied_by)
    if isinstance(error, TooManyRequests) and error.is_budget:
        return ended(action, Result.FAILED, _budget_message(error), error.retry_after or BUDGET_SECONDS)
    if is_trouble(error):
        return Again(message, asked_pause(error))
    if isinstance(error, NotFound) and action.verb in (Verb.DELETE, Verb.EVICT):
        return done(action, message="gone already")
    if has_moved_on(error) or (isinstance(error, NotFound) and action.verb is Verb.PATCH):
        return ended(action, Result.CONFLICT, message)
    return ended(action, Result.FAILED, message, asked_pause(error) or 0.0)


def _budget_message(error: TooManyRequests) -> str:
    """The cause names the budget and its numbers; the message alone says only that it would be violated."""
    details = [cause.message for cause in error.causes if cause.reason == "DisruptionBudget" and cause.message]
    return " ".join([error.message, *details])


def has_moved_on(error: ClientError) -> bool:
    """Whether a precondition failed. A uid that is not the object's is, to the server, an attempt to change it."""
    if isinstance(error, Invalid):
        return any(cause.field == "metadata.uid" for cause in error.causes)
    return isinstance(error, Conflict)
