"""The heartbeats of nodes.

A heartbeat is a renewed Lease or a posted Ready condition; its time is when the server saw it, not the node's clock.
A renewal is a dictionary write: the node's deadline stays queued and is checked when it is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from nodeyard.apiserver.controllers.node_facts import NodeFacts
from nodeyard.apiserver.store import Event
from nodeyard.kube.timestamps import parse_rfc3339
from nodeyard.process.clock import Clock

MONITOR_GRACE: Final = 50.0
STARTUP_GRACE: Final = 60.0
"""The grace period of a node that has never posted its status."""


class _LeaseSpec(msgspec.Struct, rename="camel"):
    renew_time: str | None = None


class _Lease(msgspec.Struct):
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


_decode_lease = msgspec.json.Decoder(_Lease).decode


@dataclass(slots=True)
class _Pulse:
    seen: float
    """Monotonic time."""
    heartbeat: str | None = None
    has_ready: bool = False


class NodeHealth:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pulses: dict[str, _Pulse] = {}
        self._renewals: dict[str, tuple[str, float]] = {}
        """Renew time by node, and when we saw it."""

    def observe_lease(self, event: Event) -> None:
        name = event.stored.key.name
        if event.type == "DELETED":
            self._renewals.pop(name, None)
            return
        renewed = _decode_lease(event.stored.raw).spec.renew_time
        known = self._renewals.get(name)
        if renewed is not None and (known is None or known[0] != renewed):
            self._renewals[name] = (renewed, self._clock.monotonic())

    def observe_node(self, name: str, facts: NodeFacts) -> None:
        ready, pulse, now = facts.ready, self._pulses.get(name), self._clock.monotonic()
        if pulse is None:
            seen = now if ready else now - self._age(facts)
            self._pulses[name] = _Pulse(seen, ready.last_heartbeat_time if ready else None, ready is not None)
            return
        if pulse.has_ready != (ready is not None) or (ready and pulse.heartbeat != ready.last_heartbeat_time):
            pulse.seen = now
            pulse.has_ready = ready is not None
            pulse.heartbeat = ready.last_heartbeat_time if ready else None

    def forget(self, name: str) -> None:
        self._pulses.pop(name, None)

    def reset(self) -> None:
        """Take now as a heartbeat of every node."""
        now = self._clock.monotonic()
        for pulse in self._pulses.values():
            pulse.seen = now

    def remaining(self, name: str) -> float:
        """Seconds until the node counts as lost; zero or less if it is lost."""
        pulse = self._pulses[name]
        _, renewed = self._renewals.get(name, ("", float("-inf")))
        grace = MONITOR_GRACE if pulse.has_ready else STARTUP_GRACE
        return max(pulse.seen, renewed) + grace - self._clock.monotonic()

    def _age(self, facts: NodeFacts) -> float:
        created = facts.metadata.creation_timestamp
        now: datetime = self._clock.now()
        return (now - parse_rfc3339(created)).total_seconds() if created else 0.0
