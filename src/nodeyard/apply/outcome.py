"""What became of a plan: one result per action."""

from __future__ import annotations

from enum import Enum

import msgspec

from nodeyard.kube.json import Json
from nodeyard.plan.model import Action, Blocked
from nodeyard.plan.reasons import EngineReason


class Result(Enum):
    DONE = "Done"
    CONFLICT = "Conflict"
    """409: the object moved on. The key is planned again."""
    DENIED = "Denied"
    """Admission refused; retried on an event or slowly, never hot."""
    FAILED = "Failed"
    """Anything else; retried with backoff."""
    UNKNOWN = "Unknown"
    """No answer, and a GET could not settle it."""
    SKIPPED = "Skipped"
    """Something it comes after did not succeed."""
    HELD = "Held"
    """By the brake, a pause, observation, or a lost lease."""


class ActionResult(msgspec.Struct, frozen=True, kw_only=True):
    action: Action
    result: Result
    message: str = ""
    retry_after: float = 0.0
    denied_by: str = ""
    """Of a denial: the policy or webhook that refused."""
    answer: Json = None
    """The object as the server answered, decoded; overlays the cache until the watch confirms it."""
    version: str = ""
    """The resourceVersion that this very write led to; empty where its own answer did not come, since what is read
    later may be the work of others too."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    results: tuple[ActionResult, ...] = ()
    waited: float | None = None
    """Seconds from the first event that was not served before to when all was carried out; None where no event called
    for the pass."""

    @property
    def is_complete(self) -> bool:
        return all(result.result is Result.DONE for result in self.results)

    @property
    def denied(self) -> tuple[Blocked, ...]:
        """What admission refused, in the form in which a plan says so."""
        return tuple(
            Blocked(
                object=each.action.object,
                reason=EngineReason.ADMISSION_DENIED.value,
                facts={"by": each.denied_by, "message": each.message},
            )
            for each in self.results
            if each.result is Result.DENIED
        )

    def of(self, action_id: str) -> ActionResult | None:
        return next((each for each in self.results if each.action.id == action_id), None)
