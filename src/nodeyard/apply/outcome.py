"""The outcome of a plan: one result per action, and the classification of error responses into results and retries."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from nodeyard.client.errors import AdmissionDenied, ClientError, Conflict, Invalid, NotFound, TooManyRequests
from nodeyard.kube.json import Json
from nodeyard.plan import reasons
from nodeyard.plan.model import Action, Blocked, Verb


class Result(Enum):
    DONE = "Done"
    CONFLICT = "Conflict"
    """409: the object has changed since it was planned. The key is planned again."""
    DENIED = "Denied"
    """Admission refused the write. It is retried on an event or slowly, never at once."""
    FAILED = "Failed"
    """Any other error; retried with backoff."""
    UNKNOWN = "Unknown"
    """The response was lost, and a GET could not tell whether the write happened."""
    SKIPPED = "Skipped"
    """A dependency did not succeed."""
    HELD = "Held"
    """Held by the brake, a pause, observe-only mode or a lost lease."""


class ActionResult(msgspec.Struct, frozen=True, kw_only=True):
    action: Action
    result: Result
    message: str = ""
    retry_after: float = 0.0
    denied_by: str = ""
    """The policy or webhook that denied the write."""
    answer: Json = None
    """The decoded object from the response; it overlays the cache until the watch confirms it."""
    version: str = ""
    """The resourceVersion that this write produced. Empty if its own response was lost, since a later GET may show
    writes of others too."""

    @property
    def denial(self) -> Blocked | None:
        """The denial as an entry of a plan's `blocked`; None if admission did not refuse."""
        if self.result is not Result.DENIED:
            return None
        denied = reasons.AdmissionDenied(by=self.denied_by, message=self.message)
        return Blocked(object=self.action.object, reason=denied.reason, facts=denied)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    results: tuple[ActionResult, ...] = ()
    waited: float | None = None
    """Seconds from the first unserved event to the end of the writes; None if no event triggered the pass."""

    @property
    def is_complete(self) -> bool:
        return all(result.result is Result.DONE for result in self.results)

    @property
    def denied(self) -> tuple[Blocked, ...]:
        """The denials as entries of a plan's `blocked`."""
        return tuple(each.denial for each in self.results if each.denial is not None)

    def of(self, action_id: str) -> ActionResult | None:
        return next((each for each in self.results if each.action.id == action_id), None)


BUDGET_SECONDS: Final = 10.0
"""Pause before an eviction that a PodDisruptionBudget refused is sent again, if the server names none."""


class Retry(msgspec.Struct, frozen=True):
    """The write was not carried out; send it again."""

    message: str
    retry_after: float | None = None


Classified = ActionResult | Retry


def done(action: Action, answer: Json = None, message: str = "", version: str = "") -> ActionResult:
    return ActionResult(action=action, result=Result.DONE, answer=answer, message=message, version=version)


def action_result(action: Action, result: Result, message: str, pause: float = 0.0) -> ActionResult:
    return ActionResult(action=action, result=result, message=message, retry_after=pause)


def classify(action: Action, error: ClientError) -> Classified:
    """Classify an error response. Order matters: a denial may carry any code, and a PDB's 429 is not an overload."""
    message = str(error)
    if isinstance(error, AdmissionDenied):
        return ActionResult(action=action, result=Result.DENIED, message=message, denied_by=error.denied_by)
    if isinstance(error, TooManyRequests) and error.is_budget:
        return action_result(action, Result.FAILED, _budget_message(error), error.retry_after or BUDGET_SECONDS)
    if error.is_transient:
        return Retry(message, error.retry_after)
    if isinstance(error, NotFound) and action.verb in (Verb.DELETE, Verb.EVICT):
        return done(action, message="already deleted")
    if is_conflict(error) or (isinstance(error, NotFound) and action.verb is Verb.PATCH):
        return action_result(action, Result.CONFLICT, message)
    return action_result(action, Result.FAILED, message, error.retry_after or 0.0)


def _budget_message(error: TooManyRequests) -> str:
    """Return the message with the causes, which name the PDB and its numbers."""
    details = [cause.message for cause in error.causes if cause.reason == "DisruptionBudget" and cause.message]
    return " ".join([error.message, *details])


def is_conflict(error: ClientError) -> bool:
    """Return True if a precondition failed. A wrong uid is reported as an attempt to change metadata.uid (422)."""
    if isinstance(error, Invalid):
        return any(cause.field == "metadata.uid" for cause in error.causes)
    return isinstance(error, Conflict)
