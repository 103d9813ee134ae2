"""The outcome of a plan: one result per action."""

from __future__ import annotations

from enum import Enum

import msgspec

from nodeyard.kube.json import Json
from nodeyard.plan.model import Action, Blocked
from nodeyard.plan.reasons import AdmissionDenied


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
        denied = AdmissionDenied(by=self.denied_by, message=self.message)
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
