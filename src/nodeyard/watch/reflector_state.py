"""State machine of the reflector, without I/O.

    STREAMING ───listed────▶ WATCHING ──ended──▶ WATCHING          the regular end of a watch is no error
        │                    ▲    │
     refused                 │    ├──expired──▶ STREAMING          410 Gone: relist
        ▼                    │    │
     LISTING ────listed──────┘    └──broken──▶ WAITING ──▶ WATCHING from the last resourceVersion

After a failure the reflector backs off, then retries the phase that failed. After two idle timeouts in a row it
relists: a server restored from a backup may never reach the last resourceVersion. If the server refuses to stream the
list (400, 422), the reflector lists in pages from then on. If streaming fails midway, the next list is in pages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Phase(Enum):
    STREAMING = "Streaming"
    """A watch that begins with the list (`sendInitialEvents`)."""
    LISTING = "Listing"
    """A list in pages."""
    WATCHING = "Watching"
    """A watch from the last resourceVersion."""
    WAITING = "Waiting"
    """Backoff before a retry."""
    STOPPED = "Stopped"


class ReflectorEvent(Enum):
    LISTED = "the list is complete"
    RECEIVED = "an event or a bookmark arrived"
    ENDED = "the server ended the watch"
    BROKEN = "the connection or the request failed"
    SILENT = "the idle timeout passed without an event or a bookmark"
    EXPIRED = "the last resourceVersion is too old"
    STREAMING_REFUSED = "the server does not support streaming lists"
    LIST_FAILED = "the streamed list broke off"
    BACKOFF_OVER = "the backoff is over"
    STOPPED = "the watch was stopped"


@dataclass(frozen=True, slots=True)
class State:
    phase: Phase = Phase.STREAMING
    then: Phase = Phase.STREAMING
    """The phase that follows the backoff."""
    failures: int = 0
    """Consecutive failures since the last event; they determine the backoff."""
    can_stream: bool = True


def next_state(state: State, event: ReflectorEvent) -> State:
    """Return the state after an event."""
    if event is ReflectorEvent.RECEIVED:
        return state if not state.failures else replace(state, failures=0)
    if event in (ReflectorEvent.LISTED, ReflectorEvent.ENDED):
        return replace(state, phase=Phase.WATCHING)
    if event is ReflectorEvent.BACKOFF_OVER:
        return replace(state, phase=state.then)
    if event is ReflectorEvent.STREAMING_REFUSED:
        return replace(state, phase=Phase.LISTING, can_stream=False)
    if event is ReflectorEvent.STOPPED:
        return replace(state, phase=Phase.STOPPED)
    return _after_failure(state, event)


def _after_failure(state: State, event: ReflectorEvent) -> State:
    failures = state.failures + 1
    if event is ReflectorEvent.BROKEN:
        return replace(state, phase=Phase.WAITING, then=state.phase, failures=failures)
    if event is ReflectorEvent.LIST_FAILED:
        return replace(state, phase=Phase.WAITING, then=Phase.LISTING, failures=failures)
    relist = Phase.STREAMING if state.can_stream else Phase.LISTING
    if event is ReflectorEvent.SILENT:
        is_trusted = state.phase is Phase.WATCHING and state.failures == 0
        return replace(state, phase=Phase.WAITING, then=Phase.WATCHING if is_trusted else relist, failures=failures)
    # One relist is normal. A server that expires each list at once must not be relisted in a tight loop.
    phase = relist if state.failures == 0 else Phase.WAITING
    return replace(state, phase=phase, then=relist, failures=failures)
