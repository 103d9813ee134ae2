"""Times of the lease rounds."""

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.capabilities.clustertree.leases.keeper import PERIOD_SECONDS, REST_SECONDS, next_round, offset

moments = st.floats(0, 10**6)


def test_many_leaves_are_spread_over_the_period():
    tenths = [int(offset(f"leaf-{number}")) for number in range(200)]
    assert {tenths.count(tenth) > 5 for tenth in range(int(PERIOD_SECONDS))} == {True}


def test_rounds_on_time_are_a_period_apart():
    first = next_round("oak", 100.0)
    assert abs(next_round("oak", first) - first - PERIOD_SECONDS) < 1e-6


@given(st.text(max_size=20), moments)
def test_the_next_round_is_within_bounds(name, began):
    wait = next_round(name, began) - began
    assert REST_SECONDS - 1e-6 <= wait <= PERIOD_SECONDS + REST_SECONDS + 1e-6


@given(st.text(max_size=20), moments, moments)
def test_a_round_that_came_early_shifts_none_of_those_after_it(name, one, other):
    apart = abs(next_round(name, one) - next_round(name, other)) % PERIOD_SECONDS
    assert min(apart, PERIOD_SECONDS - apart) < 1e-4
