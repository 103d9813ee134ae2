"""Liveness of a leaf: a state machine driven by probes, and the health that the lease loop publishes.

               responds                       two good probes in a row
        ┌──────────────── FAILING ──third──┐  ┌──────────────────────┐
        ▼                  ▲   │           ▼  │                      ▼
      ALIVE ───fails───────┘   │rejects   UNREACHABLE              ALIVE
        │                      ▼           ▲
        └──────rejects───▶ REJECTING ──────┘ rejects for longer than the grace, or fails three times

One round is one probe. A round renews leases only if the leaf responded. A failed round renews nothing, and an
unreachable leaf gets no renewals until two good probes. A rejection is a response, since the server is up, but it never
makes an unreachable leaf alive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

FAILED_ROUNDS: Final = 3
"""Failed rounds in a row that make a leaf unreachable."""
GOOD_PROBES: Final = 2
"""Good probes in a row that make an unreachable leaf alive."""


class State(Enum):
    ALIVE = "alive"
    """The leaf responds; leases are renewed."""
    FAILING = "failing"
    """One or two rounds failed: they renewed nothing, and status does not change yet."""
    REJECTING = "rejecting"
    """The leaf responds but rejects the credentials; leases are renewed until the grace ends."""
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Alive:
    """The probe succeeded."""


@dataclass(frozen=True)
class Rejected:
    """The leaf responded and rejected the credentials."""

    message: str


@dataclass(frozen=True)
class Failed:
    """The leaf did not respond, responded that it is not ready, or could not be probed."""

    message: str


Answer: TypeAlias = Alive | Rejected | Failed


@dataclass(frozen=True)
class Liveness:
    """State of one leaf after the rounds so far. Immutable: `after` returns the next state."""

    state: State
    since: datetime
    """Time of the last state change."""
    last_contact: datetime | None = None
    """Time of the last response of any kind."""
    message: str = ""
    """Error of the last probe; empty while alive."""
    rejected_since: datetime | None = None
    """Time of the first rejection since the credentials were last accepted."""
    is_rejected: bool = False
    """The credentials are the reason why the leaf is not alive."""
    failures: int = 0
    """Failed rounds in a row."""
    good: int = 0
    """Good probes in a row while unreachable."""

    @staticmethod
    def new(now: datetime, *, rejected_since: datetime | None = None) -> Liveness:
        """Start without knowledge of the leaf. A credential grace that began before a restart continues."""
        return Liveness(State.FAILING, now, rejected_since=rejected_since)

    @staticmethod
    def given_up(now: datetime, *, is_rejected: bool = False, rejected_since: datetime | None = None) -> Liveness:
        """Start from a leaf that another replica, or this one before a restart, marked unreachable on its nodes."""
        return Liveness(State.UNREACHABLE, now, is_rejected=is_rejected, rejected_since=rejected_since)

    @property
    def may_renew(self) -> bool:
        """The round that led to this state renews leases."""
        return self.state in (State.ALIVE, State.REJECTING)

    def after(self, answer: Answer, now: datetime, grace: timedelta) -> Liveness:
        match answer:
            case Alive():
                return self._answered(now)
            case Rejected(message):
                return self._rejected(message, now, grace)
            case Failed(message):
                return self._failed(message, now)

    def _answered(self, now: datetime) -> Liveness:
        good = self.good + 1
        if self.state is State.UNREACHABLE and good < GOOD_PROBES:
            return replace(self, last_contact=now, rejected_since=None, failures=0, good=good)
        return Liveness(State.ALIVE, self._since(State.ALIVE, now), last_contact=now)

    def _rejected(self, message: str, now: datetime, grace: timedelta) -> Liveness:
        first = self.rejected_since or now
        is_over = self.state is State.UNREACHABLE or now - first >= grace
        state = State.UNREACHABLE if is_over else State.REJECTING
        return Liveness(state, self._since(state, now), now, message, rejected_since=first, is_rejected=True)

    def _failed(self, message: str, now: datetime) -> Liveness:
        failures = self.failures + 1
        is_lost = failures >= FAILED_ROUNDS
        state = State.UNREACHABLE if is_lost or self.state is State.UNREACHABLE else State.FAILING
        return replace(
            self,
            state=state,
            since=self._since(state, now),
            message=message,
            is_rejected=self.is_rejected and not is_lost,
            failures=failures,
            good=0,
        )

    def _since(self, state: State, now: datetime) -> datetime:
        return self.since if state is self.state else now


@dataclass(frozen=True)
class LeafHealth:
    state: State
    since: datetime
    """Time of the last state change."""
    last_contact: datetime | None = None
    """Time of the last response of any kind."""
    message: str = ""
    """Error of the last probe; empty while alive."""
    skew_seconds: float = 0.0
    """Clock skew: how far the leaf's clock is ahead, by the Date header of its responses."""
    renewed_at: datetime | None = None
    """Time by which all leases were last renewed; None without leases, or until all have been renewed once."""
    failed: tuple[tuple[str, str], ...] = ()
    """Nodes whose lease was not renewed in the last round, with the error; sorted by name."""
    moved: tuple[str, ...] = ()
    """Nodes whose lease another process renews."""
    is_rejected: bool = False
    """REJECTING, or UNREACHABLE because the credentials were rejected for longer than the grace."""
    rejected_since: datetime | None = None
    """Time of the first rejection since the credentials were last accepted."""

    def is_news(self, before: LeafHealth | None) -> bool:
        """Return True if a field that decisions depend on has changed. Timestamps alone are no change."""
        return before is None or self._decisive() != before._decisive()

    def _decisive(self) -> tuple[object, ...]:
        return self.state, self.is_rejected, self.failed, self.moved, self.renewed_at is None
