"""Transitions of the reflector's state machine."""

import pytest

from nodeyard.watch.reflector import Phase, ReflectorEvent, State, next_state


@pytest.mark.parametrize(
    ("phase", "happening", "follows"),
    [
        (Phase.STREAMING, ReflectorEvent.LISTED, Phase.WATCHING),
        (Phase.LISTING, ReflectorEvent.LISTED, Phase.WATCHING),
        (Phase.WATCHING, ReflectorEvent.ENDED, Phase.WATCHING),
        (Phase.STREAMING, ReflectorEvent.STREAMING_REFUSED, Phase.LISTING),
        (Phase.WATCHING, ReflectorEvent.EXPIRED, Phase.STREAMING),
        (Phase.WATCHING, ReflectorEvent.STOPPED, Phase.STOPPED),
    ],
)
def test_immediate_transitions(phase, happening, follows):
    assert next_state(State(phase), happening).phase is follows


@pytest.mark.parametrize(
    ("phase", "happening", "then"),
    [
        (Phase.STREAMING, ReflectorEvent.BROKEN, Phase.STREAMING),
        (Phase.STREAMING, ReflectorEvent.LIST_FAILED, Phase.LISTING),
        (Phase.LISTING, ReflectorEvent.BROKEN, Phase.LISTING),
        (Phase.WATCHING, ReflectorEvent.BROKEN, Phase.WATCHING),
        (Phase.WATCHING, ReflectorEvent.SILENT, Phase.WATCHING),
    ],
)
def test_delayed_transitions(phase, happening, then):
    waiting = next_state(State(phase), happening)
    assert waiting.phase is Phase.WAITING
    assert next_state(waiting, ReflectorEvent.BACKOFF_OVER).phase is then


def test_a_watch_silent_twice_in_a_row_relists():
    once = next_state(next_state(State(Phase.WATCHING), ReflectorEvent.SILENT), ReflectorEvent.BACKOFF_OVER)
    twice = next_state(once, ReflectorEvent.SILENT)
    assert next_state(twice, ReflectorEvent.BACKOFF_OVER).phase is Phase.STREAMING


def test_a_refusal_to_stream_is_remembered():
    refused = next_state(State(), ReflectorEvent.STREAMING_REFUSED)
    watching = next_state(refused, ReflectorEvent.LISTED)
    assert next_state(watching, ReflectorEvent.EXPIRED).phase is Phase.LISTING


def test_a_server_that_forgets_at_once_is_not_asked_in_a_tight_loop():
    again = next_state(next_state(State(Phase.WATCHING), ReflectorEvent.EXPIRED), ReflectorEvent.LISTED)
    assert next_state(again, ReflectorEvent.EXPIRED).phase is Phase.WAITING


def test_failures_count_until_something_is_received():
    state = State(Phase.WATCHING)
    for _ in range(3):
        state = next_state(next_state(state, ReflectorEvent.BROKEN), ReflectorEvent.BACKOFF_OVER)
    assert state.failures == 3
    assert next_state(state, ReflectorEvent.RECEIVED).failures == 0
