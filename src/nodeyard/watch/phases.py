"""The life of an informer as a table: which phase follows which, and why. Pure; the informer does what a phase says.

    STREAMING ──all told──▶ WATCHING ──ended──▶ WATCHING          a stream that ends is no error
        │                    ▲    │
     refused                 │    ├──expired──▶ STREAMING          410: everything is told again
        ▼                    │    │
     LISTING ───all told─────┘    └──broken──▶ WAITING ──▶ WATCHING from the last version

Whatever breaks waits first and then goes on with the phase that broke. A watch that is silent twice in a row is not
trusted any longer and everything is told again: a server restored from a backup may never reach our last version. A
server that refuses to stream its list (400, 422) is never asked to again; one that fails while it streams is asked for
pages the next time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Phase(Enum):
    STREAMING = "Streaming"
    """A watch that begins with everything there is."""
    LISTING = "Listing"
    """Everything there is, in pages."""
    WATCHING = "Watching"
    """Changes since the last version."""
    WAITING = "Waiting"
    """Before trying again."""
    STOPPED = "Stopped"


class Happening(Enum):
    TOLD = "everything has been told"
    HEARD = "a change or a bookmark came"
    ENDED = "the server ended the stream"
    BROKEN = "the connection failed, or the server turned us away"
    SILENT = "nothing came in time, not even a bookmark"
    EXPIRED = "the last version is too old"
    REFUSED = "the server does not stream its lists"
    STUCK = "the list broke off while it was streamed"
    RESTED = "the wait is over"
    STOPPED = "nobody needs the watch any more"


@dataclass(frozen=True, slots=True)
class State:
    phase: Phase = Phase.STREAMING
    then: Phase = Phase.STREAMING
    """What comes after waiting."""
    failures: int = 0
    """In a row, since something was last heard: how long to wait."""
    can_stream: bool = True


def after(state: State, happening: Happening) -> State:
    """The state that follows."""
    if happening is Happening.HEARD:
        return state if not state.failures else replace(state, failures=0)
    if happening in (Happening.TOLD, Happening.ENDED):
        return replace(state, phase=Phase.WATCHING)
    if happening is Happening.RESTED:
        return replace(state, phase=state.then)
    if happening is Happening.REFUSED:
        return replace(state, phase=Phase.LISTING, can_stream=False)
    if happening is Happening.STOPPED:
        return replace(state, phase=Phase.STOPPED)
    return _after_failure(state, happening)


def _after_failure(state: State, happening: Happening) -> State:
    failures = state.failures + 1
    if happening is Happening.BROKEN:
        return replace(state, phase=Phase.WAITING, then=state.phase, failures=failures)
    if happening is Happening.STUCK:
        return replace(state, phase=Phase.WAITING, then=Phase.LISTING, failures=failures)
    telling = Phase.STREAMING if state.can_stream else Phase.LISTING
    if happening is Happening.SILENT:
        is_trusted = state.phase is Phase.WATCHING and state.failures == 0
        return replace(state, phase=Phase.WAITING, then=Phase.WATCHING if is_trusted else telling, failures=failures)
    # Once is ordinary; a server that tells everything and at once forgets it must not be asked in a tight loop.
    phase = telling if state.failures == 0 else Phase.WAITING
    return replace(state, phase=phase, then=telling, failures=failures)
