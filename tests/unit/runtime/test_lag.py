"""How long what happened has waited."""

import pytest

from nodeyard.runtime.lag import HELD_BACK_SECONDS, Lag
from nodeyard.runtime.verdict import Ending, Verdict

SETTLED = Verdict(Ending.SETTLED)


@pytest.fixture
def lag(clock):
    return Lag(clock)


async def test_it_counts_from_the_first_event_of_those_that_a_pass_serves(lag, clock):
    lag.mark("a")
    await clock.advance(1)
    lag.mark("a")
    await clock.advance(2)
    lag.begin("a")
    assert lag.waited("a") == 3
    await clock.advance(0.5)
    assert lag.waited("a") == 3.5


def test_a_pass_that_no_event_called_for_has_not_waited(lag):
    lag.begin("a")
    assert lag.waited("a") is None


async def test_what_was_served_is_over(lag, clock):
    lag.mark("a")
    lag.begin("a")
    lag.end("a", SETTLED)
    await clock.advance(5)
    lag.begin("a")
    assert lag.waited("a") is None


async def test_what_happens_during_a_pass_is_the_next_ones(lag, clock):
    lag.mark("a")
    lag.begin("a")
    await clock.advance(1)
    lag.mark("a")
    await clock.advance(1)
    assert lag.waited("a") == 2
    lag.end("a", SETTLED)
    lag.begin("a")
    assert lag.waited("a") == 1


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.CONFLICT, Ending.DENIED, Ending.HELD, Ending.NOT_SYNCED])
async def test_what_was_left_goes_on_waiting_from_its_first_moment(lag, clock, ending):
    lag.mark("a")
    lag.begin("a")
    await clock.advance(1)
    lag.mark("a")
    lag.end("a", Verdict(ending))
    await clock.advance(1)
    lag.begin("a")
    assert lag.waited("a") == 2


async def test_a_write_that_is_held_back_for_a_moment_goes_on_waiting(lag, clock):
    lag.mark("a")
    lag.begin("a")
    lag.end("a", Verdict(Ending.SETTLED, wake_after=HELD_BACK_SECONDS))
    await clock.advance(1)
    lag.begin("a")
    assert lag.waited("a") == 1


async def test_what_a_plan_wants_to_look_at_much_later_is_no_lag(lag, clock):
    lag.mark("a")
    lag.begin("a")
    lag.end("a", Verdict(Ending.SETTLED, wake_after=60.0))
    await clock.advance(60)
    lag.begin("a")
    assert lag.waited("a") is None


@pytest.mark.parametrize("ending", [Ending.GONE, Ending.NOT_LEADING, Ending.PAUSED, Ending.OBSERVED])
def test_what_nothing_will_be_written_for_does_not_wait(lag, ending):
    lag.mark("a")
    lag.begin("a")
    lag.end("a", Verdict(ending, wake_after=0.0))
    lag.begin("a")
    assert lag.waited("a") is None


async def test_a_pass_that_was_cancelled_leaves_its_moment_to_the_next(lag, clock):
    lag.mark("a")
    lag.begin("a")
    await clock.advance(3)
    lag.mark("a")
    lag.begin("a")
    assert lag.waited("a") == 3


def test_keys_wait_each_for_itself(lag):
    lag.mark("a")
    lag.begin("b")
    assert lag.waited("b") is None
