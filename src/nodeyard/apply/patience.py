"""How often a request is repeated within one pass, and after how long.

A server in trouble is asked again a few times only: what still fails then is left to the queue, which waits longer and
plans anew meanwhile. A server that wants a long pause gets it there too, not with a worker asleep.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from nodeyard.client.errors import ClientError, ServerError, TooManyRequests, TransportError


@dataclass(frozen=True, slots=True)
class Patience:
    attempts: int = 4
    first: float = 0.25
    most: float = 5.0

    def pause(self, failures: int, asked: float | None, random: Random) -> float | None:
        """Seconds until the next attempt after so many failures; None when it is time to give up."""
        if failures >= self.attempts or (asked or 0.0) > self.most:
            return None
        backoff = min(self.most, self.first * 2.0 ** (failures - 1))
        return max(asked or 0.0, backoff * (0.5 + random.random() / 2))


def is_trouble(error: ClientError) -> bool:
    """Whether it is the server's or the network's state that failed us, and not what we asked for."""
    if isinstance(error, TooManyRequests):
        return not error.is_budget
    return isinstance(error, (ServerError, TransportError))


def asked_pause(error: ClientError) -> float | None:
    """What the server said in Retry-After."""
    return getattr(error, "retry_after", None)
