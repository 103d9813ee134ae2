"""What the server wants to be left alone with for a while: plans made meanwhile, for whatever reason, do not ask again.

A budget that refuses an eviction is the usual case. Events of other objects make a plan many times a second, and each
would have the same eviction in it.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from nodeyard.apply.outcome import ActionResult
from nodeyard.apply.verdicts import ended
from nodeyard.plan.model import Action, ObjectRef, Verb
from nodeyard.process.clock import Clock

LONGEST_SECONDS: Final = 300.0
"""Whatever the server asks for: what stood in front of it may have said so, and a drain waits meanwhile."""

_Asked: TypeAlias = tuple[Verb, ObjectRef]


class Pauses:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: dict[_Asked, tuple[float, ActionResult]] = {}
        """Until when, and how it was said."""

    def of(self, action: Action) -> ActionResult | None:
        """How the action ended the last time, where it is too soon for the next."""
        if not self._refused:
            return None
        until, result = self._refused.get((action.verb, action.object), (0.0, None))
        left = until - self._clock.monotonic()
        return None if result is None or left <= 0 else ended(action, result.result, result.message, left)

    def noted(self, result: ActionResult) -> ActionResult:
        """The result as it came."""
        if result.retry_after:
            asked = (result.action.verb, result.action.object)
            now = self._clock.monotonic()
            self._forget(asked, now)
            self._refused[asked] = now + min(result.retry_after, LONGEST_SECONDS), result
        return result

    def _forget(self, asked: _Asked, now: float) -> None:
        """What is about to be said anew, and what is over: mostly what was said first."""
        self._refused.pop(asked, None)
        while self._refused and next(iter(self._refused.values()))[0] <= now:
            del self._refused[next(iter(self._refused))]
