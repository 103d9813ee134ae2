"""The state machine of a leaf's liveness."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.capabilities.clustertree.leases.liveness import Alive, Failed, LeafHealth, Liveness, Rejected, State

START = datetime(2026, 1, 1, tzinfo=UTC)
GRACE = timedelta(minutes=10)
ROUND = timedelta(seconds=10)
GOOD, NO, DOWN = Alive(), Rejected("401"), Failed("refused")


def after(*answers, health=None, grace=GRACE):
    """The liveness after rounds ten seconds apart."""
    health = Liveness.new(START) if health is None else health
    for number, answer in enumerate(answers):
        health = health.after(answer, START + number * ROUND, grace)
    return health


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ([GOOD], State.ALIVE),
        ([DOWN], State.FAILING),
        ([GOOD, DOWN, DOWN], State.FAILING),
        ([GOOD, DOWN, DOWN, DOWN], State.UNREACHABLE),
        ([GOOD, DOWN, DOWN, GOOD], State.ALIVE),
        ([DOWN, DOWN, GOOD, DOWN, DOWN], State.FAILING),
        ([DOWN, DOWN, DOWN, GOOD], State.UNREACHABLE),
        ([DOWN, DOWN, DOWN, GOOD, GOOD], State.ALIVE),
        ([DOWN, DOWN, DOWN, GOOD, DOWN, GOOD], State.UNREACHABLE),
        ([GOOD, NO], State.REJECTING),
        ([NO, GOOD], State.ALIVE),
        ([DOWN, DOWN, NO, DOWN, DOWN], State.FAILING),
        ([NO, DOWN, DOWN, DOWN], State.UNREACHABLE),
        ([DOWN, DOWN, DOWN, NO, NO, NO], State.UNREACHABLE),
        ([DOWN, DOWN, DOWN, GOOD, NO, GOOD], State.UNREACHABLE),
    ],
    ids=lambda value: value.value if isinstance(value, State) else "".join(type(each).__name__[0] for each in value),
)
def test_answers_lead_to_a_state(answers, state):
    assert after(*answers).state is state


def test_a_leaf_that_rejects_us_is_renewed_until_the_grace_is_over():
    rejecting = after(GOOD, *[NO] * 60)
    assert (rejecting.state, rejecting.may_renew) == (State.REJECTING, True)
    over = after(GOOD, *[NO] * 61)
    assert (over.state, over.may_renew, over.is_rejected) == (State.UNREACHABLE, False, True)


def test_a_failed_round_between_two_rejections_does_not_restart_the_grace():
    assert after(NO, *[DOWN, NO] * 30).state is State.UNREACHABLE


def test_accepted_credentials_restart_the_grace():
    assert after(*[NO] * 50, GOOD, *[NO] * 50).state is State.REJECTING


def test_without_any_grace_the_first_rejection_counts():
    assert after(GOOD, NO, grace=timedelta(0)).state is State.UNREACHABLE


def test_a_leaf_that_is_unreachable_and_then_rejects_us_is_unreachable_for_its_credentials():
    health = after(DOWN, DOWN, DOWN, NO)
    assert (health.state, health.is_rejected, health.message) == (State.UNREACHABLE, True, "401")


def test_a_leaf_that_rejected_us_and_then_stops_responding_is_no_longer_unreachable_for_its_credentials():
    health = after(*[NO] * 61, DOWN, DOWN)
    assert health.is_rejected
    assert not health.after(DOWN, START + 100 * ROUND, GRACE).is_rejected


def test_a_new_owner_requires_two_successful_probes_of_an_expired_leaf():
    given_up = Liveness.given_up(START, is_rejected=True)
    assert after(NO, health=given_up).state is State.UNREACHABLE
    assert after(GOOD, health=given_up).state is State.UNREACHABLE
    assert after(GOOD, GOOD, health=given_up).state is State.ALIVE


def test_a_takeover_within_the_grace_period_does_not_extend_it():
    taken_over = Liveness.new(START, rejected_since=START - GRACE + 2 * ROUND)
    assert after(NO, NO, health=taken_over).state is State.REJECTING
    assert after(NO, NO, NO, health=taken_over).state is State.UNREACHABLE
    assert after(GOOD, *[NO] * 60, health=taken_over).state is State.REJECTING


def test_the_moment_of_a_state_moves_only_with_the_state():
    assert after(GOOD, GOOD, GOOD).since == START
    assert after(GOOD, DOWN, DOWN).since == START + ROUND
    assert after(GOOD, DOWN, DOWN, DOWN, DOWN, DOWN).since == START + 3 * ROUND


def test_any_response_counts_as_contact():
    assert after(GOOD, DOWN).last_contact == START
    assert after(GOOD, NO, DOWN).last_contact == START + ROUND
    assert after(DOWN, DOWN, DOWN, GOOD).last_contact == START + 3 * ROUND
    assert after(DOWN).last_contact is None


def test_an_error_is_published_until_the_leaf_is_healthy():
    assert after(GOOD, DOWN).message == "refused"
    assert after(DOWN, GOOD).message == ""


@pytest.mark.parametrize(
    ("change", "is_news"),
    [
        ({}, False),
        ({"last_contact": START, "renewed_at": START + ROUND, "skew_seconds": 3.0, "message": "x"}, False),
        ({"renewed_at": None}, True),
        ({"state": State.FAILING}, True),
        ({"is_rejected": True}, True),
        ({"failed": (("n1", "403"),)}, True),
        ({"moved": ("n1",)}, True),
    ],
    ids=["nothing", "ages", "leases", "state", "rejection", "failure", "move"],
)
def test_a_change_of_age_alone_is_not_published(change, is_news):
    known = {"state": State.ALIVE, "since": START, "renewed_at": START}
    assert LeafHealth(**{**known, **change}).is_news(LeafHealth(**known)) is is_news


def test_the_first_health_is_published():
    assert LeafHealth(State.ALIVE, START).is_news(None)


answers = st.lists(st.sampled_from([GOOD, NO, DOWN]), max_size=80)


@given(answers)
def test_no_lease_is_renewed_in_a_failed_round(given_answers):
    health = Liveness.new(START)
    for number, answer in enumerate(given_answers):
        health = health.after(answer, START + number * ROUND, GRACE)
        assert not (answer == DOWN and health.may_renew)


@given(answers, st.integers(0, 20))
def test_a_leaf_is_given_up_only_after_three_failures_or_when_the_grace_is_over(given_answers, rounds_of_grace):
    health, grace = Liveness.new(START), rounds_of_grace * ROUND
    for number, answer in enumerate(given_answers):
        before, health = health, health.after(answer, START + number * ROUND, grace)
        if health.state is State.UNREACHABLE is not before.state:
            first = max((at for at in range(number) if given_answers[at] == GOOD), default=-1)
            refused = [at for at in range(first + 1, number + 1) if given_answers[at] == NO]
            is_over = answer == NO and (number - refused[0]) >= rounds_of_grace
            assert is_over or given_answers[number - 2 : number + 1] == [DOWN] * 3


@given(answers)
def test_a_leaf_comes_back_only_with_two_good_answers_in_a_row(given_answers):
    health = Liveness.new(START)
    for number, answer in enumerate(given_answers):
        before, health = health, health.after(answer, START + number * ROUND, GRACE)
        if before.state is State.UNREACHABLE is not health.state:
            assert given_answers[number - 1 : number + 1] == [GOOD, GOOD]


@given(answers)
def test_two_good_answers_make_any_leaf_alive(given_answers):
    health = after(*given_answers, GOOD, GOOD)
    assert (health.state, health.may_renew, health.message) == (State.ALIVE, True, "")
