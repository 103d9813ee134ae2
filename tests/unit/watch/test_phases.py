"""The table of an informer's life, row by row."""

import pytest

from nodeyard.watch.phases import Happening, Phase, State, after


@pytest.mark.parametrize(
    ("phase", "happening", "follows"),
    [
        (Phase.STREAMING, Happening.TOLD, Phase.WATCHING),
        (Phase.LISTING, Happening.TOLD, Phase.WATCHING),
        (Phase.WATCHING, Happening.ENDED, Phase.WATCHING),
        (Phase.STREAMING, Happening.REFUSED, Phase.LISTING),
        (Phase.WATCHING, Happening.EXPIRED, Phase.STREAMING),
        (Phase.WATCHING, Happening.STOPPED, Phase.STOPPED),
    ],
)
def test_what_follows_at_once(phase, happening, follows):
    assert after(State(phase), happening).phase is follows


@pytest.mark.parametrize(
    ("phase", "happening", "then"),
    [
        (Phase.STREAMING, Happening.BROKEN, Phase.STREAMING),
        (Phase.STREAMING, Happening.STUCK, Phase.LISTING),
        (Phase.LISTING, Happening.BROKEN, Phase.LISTING),
        (Phase.WATCHING, Happening.BROKEN, Phase.WATCHING),
        (Phase.WATCHING, Happening.SILENT, Phase.WATCHING),
    ],
)
def test_what_follows_after_a_wait(phase, happening, then):
    waiting = after(State(phase), happening)
    assert waiting.phase is Phase.WAITING
    assert after(waiting, Happening.RESTED).phase is then


def test_a_watch_silent_twice_in_a_row_is_told_everything_again():
    once = after(after(State(Phase.WATCHING), Happening.SILENT), Happening.RESTED)
    twice = after(once, Happening.SILENT)
    assert after(twice, Happening.RESTED).phase is Phase.STREAMING


def test_a_refusal_to_stream_is_remembered():
    refused = after(State(), Happening.REFUSED)
    watching = after(refused, Happening.TOLD)
    assert after(watching, Happening.EXPIRED).phase is Phase.LISTING


def test_a_server_that_forgets_at_once_is_not_asked_in_a_tight_loop():
    again = after(after(State(Phase.WATCHING), Happening.EXPIRED), Happening.TOLD)
    assert after(again, Happening.EXPIRED).phase is Phase.WAITING


def test_failures_count_until_something_is_heard():
    state = State(Phase.WATCHING)
    for _ in range(3):
        state = after(after(state, Happening.BROKEN), Happening.RESTED)
    assert state.failures == 3
    assert after(state, Happening.HEARD).failures == 0
