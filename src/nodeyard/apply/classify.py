"""Classification of responses: a final result, or a retry."""

from __future__ import annotations

from typing import Final

import msgspec

from nodeyard.apply.outcome import ActionResult, Result
from nodeyard.apply.retry import is_transient, retry_after
from nodeyard.client.errors import AdmissionDenied, ClientError, Conflict, Invalid, NotFound, TooManyRequests
from nodeyard.kube.json import Json
from nodeyard.plan.model import Action, Verb

BUDGET_SECONDS: Final = 10.0
"""Pause before an eviction that a PodDisruptionBudget refused is sent again, if the server names none."""


class Retry(msgspec.Struct, frozen=True):
    """The write was not carried out; send it again."""

    message: str
    retry_after: float | None = None


Classified = ActionResult | Retry


def done(action: Action, answer: Json = None, message: str = "", version: str = "") -> ActionResult:
    return ActionResult(action=action, result=Result.DONE, answer=answer, message=message, version=version)


def ended(action: Action, result: Result, message: str, pause: float = 0.0) -> ActionResult:
    return ActionResult(action=action, result=result, message=message, retry_after=pause)


def classify(action: Action, error: ClientError) -> Classified:
    """Classify an error response. Order matters: a denial may carry any code, and a PDB's 429 is not an overload."""
    message = str(error)
    if isinstance(error, AdmissionDenied):
        return ActionResult(action=action, result=Result.DENIED, message=message, denied_by=error.denied_by)
    if isinstance(error, TooManyRequests) and error.is_budget:
        return ended(action, Result.FAILED, _budget_message(error), error.retry_after or BUDGET_SECONDS)
    if is_transient(error):
        return Retry(message, retry_after(error))
    if isinstance(error, NotFound) and action.verb in (Verb.DELETE, Verb.EVICT):
        return done(action, message="already deleted")
    if is_conflict(error) or (isinstance(error, NotFound) and action.verb is Verb.PATCH):
        return ended(action, Result.CONFLICT, message)
    return ended(action, Result.FAILED, message, retry_after(error) or 0.0)


def _budget_message(error: TooManyRequests) -> str:
    """Return the message with the causes, which name the PDB and its numbers."""
    details = [cause.message for cause in error.causes if cause.reason == "DisruptionBudget" and cause.message]
    return " ".join([error.message, *details])


def is_conflict(error: ClientError) -> bool:
    """Return True if a precondition failed. A wrong uid is reported as an attempt to change metadata.uid (422)."""
    if isinstance(error, Invalid):
        return any(cause.field == "metadata.uid" for cause in error.causes)
    return isinstance(error, Conflict)
