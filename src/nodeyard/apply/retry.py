"""Retries of requests: the retry policy within one pass, and Retry-After per object across passes.

A request to a server in trouble is retried a few times only. The workqueue handles what still fails: it backs off
longer and plans again. A long Retry-After is left to the workqueue too, so that no worker sleeps through it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias, TypeVar

from nodeyard.apply.outcome import ActionResult
from nodeyard.client.errors import ClientError
from nodeyard.plan.model import Action, ObjectRef, Verb
from nodeyard.process.backoff import Backoff
from nodeyard.process.clock import Clock

T = TypeVar("T")

WRITE_BACKOFF: Final = Backoff(first=0.25, most=5.0)
LONGEST_SECONDS: Final = 300.0
"""Upper bound of a Retry-After: a proxy in front of the server may have sent it, and a drain waits meanwhile."""

_Target: TypeAlias = tuple[Verb, ObjectRef]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A few attempts with backoff. A Retry-After beyond the longest backoff is left to the workqueue."""

    attempts: int = 4
    backoff: Backoff = WRITE_BACKOFF

    def pause(self, failures: int, retry_after: float | None, random: Random) -> float | None:
        """Return the seconds until the next attempt after this many failures; None to give up."""
        at_least = retry_after or 0.0
        if failures >= self.attempts or at_least > self.backoff.most:
            return None
        return self.backoff.seconds(failures, random, at_least)

    async def run(self, request: Callable[[], Awaitable[T]], clock: Clock, random: Random) -> T:
        """Send the request until it succeeds; raise its error if it is not transient, or after the last attempt."""
        failures = 0
        while True:
            try:
                return await request()
            except ClientError as error:
                failures += 1
                pause = self.pause(failures, error.retry_after, random)
                if pause is None or not error.is_transient:
                    raise
            await clock.sleep(pause)


RETRY_POLICY: Final = RetryPolicy()


class RetryAfter:
    """Writes that the server wants repeated only after a pause, by verb and object.

    Usually a PodDisruptionBudget refuses an eviction. Events of other objects trigger many plans a second, and each
    contains the same eviction. Until the pause is over, the last result is returned without a request.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: dict[_Target, tuple[float, ActionResult]] = {}
        """The end of the pause by the monotonic clock, and the result of the last attempt."""

    def find(self, action: Action) -> ActionResult | None:
        """Return the last result of this action while its pause lasts, else None."""
        if not self._refused:
            return None
        until, last = self._refused.get((action.verb, action.object), (0.0, None))
        left = until - self._clock.monotonic()
        if last is None or left <= 0:
            return None
        return ActionResult(action=action, result=last.result, message=last.message, retry_after=left)

    def record(self, result: ActionResult) -> ActionResult:
        """Start a pause if the result has a Retry-After. Returns the result unchanged."""
        if result.retry_after:
            target = (result.action.verb, result.action.object)
            now = self._clock.monotonic()
            self._refused.pop(target, None)
            while self._refused and next(iter(self._refused.values()))[0] <= now:
                # Expired entries are at the front of the insertion order.
                del self._refused[next(iter(self._refused))]
            self._refused[target] = now + min(result.retry_after, LONGEST_SECONDS), result
        return result
