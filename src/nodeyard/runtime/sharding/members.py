"""The live replicas, by their membership Leases.

The times in a Lease are not read: a Lease whose resourceVersion changes is alive, by our own clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nodeyard.process.clock import Clock
from nodeyard.runtime.leader.lease import Lease

STEADY_SECONDS: Final = 10.0
"""A replica must be live for this long before keys are handed over to it."""


@dataclass
class _Seen:
    lease: Lease
    since: float
    """Since when the replica has been live, as far as observed."""
    renewed_at: float
    has_renewed: bool = False


class Members:
    def __init__(self, identity: str, clock: Clock, duration: float) -> None:
        self._identity = identity
        self._clock = clock
        self._duration = duration
        self._seen: dict[str, _Seen] = {}

    def observe(self, leases: Iterable[Lease]) -> None:
        """Update from the current membership Leases of all replicas."""
        now = self._clock.monotonic()
        self._seen = {lease.metadata.name: self._update(lease, now) for lease in leases}

    @property
    def live(self) -> set[str]:
        """The live replicas, including this one. A Lease seen once counts until it has been unchanged for its
        duration."""
        now = self._clock.monotonic()
        return {self._identity} | {each.lease.holder for each in self._seen.values() if self._is_alive(each, now)}

    def is_steady(self, replica: str) -> bool:
        """Return True if the replica has renewed its Lease and been live for a while. A Lease that merely exists is not
        enough."""
        now = self._clock.monotonic()
        return any(
            each.lease.holder == replica
            and each.has_renewed
            and self._is_alive(each, now)
            and now - each.since >= STEADY_SECONDS
            for each in self._seen.values()
        )

    def _update(self, lease: Lease, now: float) -> _Seen:
        known = self._seen.get(lease.metadata.name)
        if known is None or known.lease.holder != lease.holder:
            return _Seen(lease, since=now, renewed_at=now)
        if known.lease.metadata.resource_version == lease.metadata.resource_version:
            return known
        since = known.since if self._is_alive(known, now) else now
        return _Seen(lease, since, renewed_at=now, has_renewed=True)

    def _is_alive(self, seen: _Seen, now: float) -> bool:
        return bool(seen.lease.holder) and now - seen.renewed_at < self._duration
