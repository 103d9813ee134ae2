"""Whether a leaf is alive, as probes tell: a small state machine, and what the lease loop reports of a leaf.

               answers                        two good answers in a row
        ┌──────────────── FAILING ──third──┐  ┌──────────────────────┐
        ▼                  ▲   │           ▼  │                      ▼
      ALIVE ───fails───────┘   │rejects   UNREACHABLE              ALIVE
        │                      ▼           ▲
        └──────rejects───▶ REJECTING ──────┘ rejects for longer than the grace, or fails three times

One round is one probe and one answer. Leases are renewed in a round only after an answer: a round that failed renews
nothing, and neither does a leaf that was given up until it has answered well twice. A rejection is an answer, since the
server lives, but it never brings a leaf back that was given up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

FAILED_ROUNDS: Final = 3
"""In a row, after which a leaf is unreachable."""
GOOD_PROBES: Final = 2
"""In a row, which bring an unreachable leaf back."""


class State(Enum):
    ALIVE = "alive"
    """It answers; leases are renewed."""
    FAILING = "failing"
    """One or two rounds have failed: no renewal in these, and nothing is said of it yet."""
    REJECTING = "rejecting"
    """It answers, and rejects our credentials: leases are renewed until the grace is over."""
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Alive:
    """It answered that it is well."""


@dataclass(frozen=True)
class Rejected:
    """It answered that it does not take our credentials."""

    message: str


@dataclass(frozen=True)
class Failed:
    """It did not answer, answered that it is not well, or could not be asked."""

    message: str


Answer: TypeAlias = Alive | Rejected | Failed


@dataclass(frozen=True)
class Health:
    """What is known of a leaf after the rounds so far."""

    state: State
    since: datetime
    """When it came into this state."""
    last_contact: datetime | None = None
    """When it last answered, whatever it said."""
    message: str = ""
    """What the last probe met; empty while alive."""
    rejected_since: datetime | None = None
    """When our credentials were first rejected after they had last been taken."""
    is_rejected: bool = False
    """Whether it is the credentials that keep it from being alive."""
    failures: int = 0
    """Rounds in a row that failed."""
    good: int = 0
    """Good answers in a row since it was given up."""

    @staticmethod
    def new(now: datetime, *, rejected_since: datetime | None = None) -> Health:
        """Nothing is known, and nothing is held against it; no round has answered either. A grace that began before
        goes on."""
        return Health(State.FAILING, now, rejected_since=rejected_since)

    @staticmethod
    def given_up(now: datetime, *, is_rejected: bool = False, rejected_since: datetime | None = None) -> Health:
        """Somebody before us found it unreachable, and said so on its nodes."""
        return Health(State.UNREACHABLE, now, is_rejected=is_rejected, rejected_since=rejected_since)

    @property
    def may_renew(self) -> bool:
        """Whether the round that led here renews leases."""
        return self.state in (State.ALIVE, State.REJECTING)

    def after(self, answer: Answer, now: datetime, grace: timedelta) -> Health:
        match answer:
            case Alive():
                return self._answered(now)
            case Rejected(message):
                return self._rejected(message, now, grace)
            case Failed(message):
                return self._failed(message, now)

    def _answered(self, now: datetime) -> Health:
        good = self.good + 1
        if self.state is State.UNREACHABLE and good < GOOD_PROBES:
            return replace(self, last_contact=now, rejected_since=None, failures=0, good=good)
        return Health(State.ALIVE, self._since(State.ALIVE, now), last_contact=now)

    def _rejected(self, message: str, now: datetime, grace: timedelta) -> Health:
        first = self.rejected_since or now
        is_over = self.state is State.UNREACHABLE or now - first >= grace
        state = State.UNREACHABLE if is_over else State.REJECTING
        return Health(state, self._since(state, now), now, message, rejected_since=first, is_rejected=True)

    def _failed(self, message: str, now: datetime) -> Health:
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
class Finding:
    state: State
    since: datetime
    """When it came into this state."""
    last_contact: datetime | None = None
    """When it last answered, whatever it said."""
    message: str = ""
    """What the last probe met; empty while alive."""
    skew_seconds: float = 0.0
    """How far the leaf's clock is ahead of ours, as its answers say."""
    renewed_at: datetime | None = None
    """When every lease that should be renewed last was; None where there is none, or not all of them were so far."""
    failed: tuple[tuple[str, str], ...] = ()
    """Nodes whose lease could not be renewed in the last round, with the error, by name."""
    moved: tuple[str, ...] = ()
    """Nodes whose lease somebody else renews."""
    is_rejected: bool = False
    """REJECTING, or UNREACHABLE because our credentials were rejected for longer than the grace."""
    rejected_since: datetime | None = None
    """When our credentials were first rejected after they had last been taken."""

    def is_news(self, before: Finding | None) -> bool:
        """Whether something that is decided by has changed: what merely grows older has not."""
        return before is None or self._decisive() != before._decisive()

    def _decisive(self) -> tuple[object, ...]:
        return self.state, self.is_rejected, self.failed, self.moved, self.renewed_at is None
