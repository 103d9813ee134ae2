"""How long what happened to a key has been waiting to be written.

    event ──mark──▶ unserved ──begin──▶ of this pass ──end──▶ served, or unserved again with its first moment

A pass serves all that had happened when it looked at the cache, unless something of it was left: a write failed or was
not sent, or the plan is looked at again within seconds, since it held a write back so as not to write too often. What a
plan waits for longer than that is no lag: nothing is due before.
"""

from __future__ import annotations

from typing import Final

from nodeyard.process.clock import Clock
from nodeyard.runtime.capability import Key
from nodeyard.runtime.verdict import Ending, Verdict

HELD_BACK_SECONDS: Final = 2.0

_LEFT = frozenset({Ending.NOT_SYNCED, Ending.CONFLICT, Ending.DENIED, Ending.HELD, Ending.FAILED, Ending.ERROR})
"""Endings after which something is still to be done for what happened."""


class Lag:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unserved: dict[Key, float] = {}
        self._served: dict[Key, float] = {}

    def mark(self, key: Key) -> None:
        """Something happened to it."""
        self._unserved.setdefault(key, self._clock.monotonic())

    def begin(self, key: Key) -> None:
        """A pass looks at the cache: what happened so far is its."""
        moment = self._unserved.pop(key, None)
        if moment is not None:
            # A pass that was cancelled has left its own.
            self._served.setdefault(key, moment)

    def waited(self, key: Key) -> float | None:
        """Seconds since the first event that the running pass is for; None where there was none."""
        moment = self._served.get(key)
        return None if moment is None else self._clock.monotonic() - moment

    def end(self, key: Key, verdict: Verdict) -> None:
        moment = self._served.pop(key, None)
        is_held_back = verdict.wake_after is not None and verdict.wake_after <= HELD_BACK_SECONDS
        if moment is not None and (verdict.ending in _LEFT or (verdict.ending is Ending.SETTLED and is_held_back)):
            self._unserved[key] = moment
