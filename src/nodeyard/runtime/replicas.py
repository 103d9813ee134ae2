"""The other replicas, as their Leases tell: who lives, who has lived long enough to rely on, who is long dead.

As with every Lease, nothing is read from the times in it: one that moves is alive, by our own clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nodeyard.process.clock import Clock
from nodeyard.runtime.lease import Lease

STEADY_SECONDS: Final = 10.0
"""How long a replica has to be seen alive before anything is handed over to it."""


@dataclass
class _Seen:
    lease: Lease
    since: float
    """When this life of it began, as far as we saw."""
    moved_at: float
    has_moved: bool = False


class Replicas:
    def __init__(self, us: str, clock: Clock, duration: float) -> None:
        self._us = us
        self._clock = clock
        self._duration = duration
        self._seen: dict[str, _Seen] = {}

    def see(self, leases: Iterable[Lease]) -> None:
        """All Leases of replicas, as they are now."""
        now = self._clock.monotonic()
        self._seen = {lease.metadata.name: self._look(lease, now) for lease in leases}

    @property
    def living(self) -> set[str]:
        """We among them. One that was seen once counts until it has stood still for long."""
        now = self._clock.monotonic()
        return {self._us} | {each.lease.holder for each in self._seen.values() if self._is_alive(each, now)}

    def is_steady(self, replica: str) -> bool:
        """Whether it has been seen to live for a while: a Lease that merely lies there does not say so."""
        now = self._clock.monotonic()
        return any(
            each.lease.holder == replica
            and each.has_moved
            and self._is_alive(each, now)
            and now - each.since >= STEADY_SECONDS
            for each in self._seen.values()
        )

    def _look(self, lease: Lease, now: float) -> _Seen:
        known = self._seen.get(lease.metadata.name)
        if known is None or known.lease.holder != lease.holder:
            return _Seen(lease, since=now, moved_at=now)
        if known.lease.metadata.resource_version == lease.metadata.resource_version:
            return known
        since = known.since if self._is_alive(known, now) else now
        return _Seen(lease, since, moved_at=now, has_moved=True)

    def _is_alive(self, seen: _Seen, now: float) -> bool:
        return bool(seen.lease.holder) and now - seen.moved_at < self._duration
