"""Backoff grows, is bounded and has jitter; each key has its own."""

from random import Random

import pytest

from nodeyard.process.backoff import Backoff, Failures


def test_each_wait_is_between_half_and_all_of_twice_the_last():
    random = Random(1)
    waits = [Backoff(first=1, most=8).seconds(failures, random) for failures in (1, 2, 3, 4, 5)]
    for wait, full in zip(waits, (1, 2, 4, 8, 8), strict=True):
        assert full / 2 <= wait <= full


def test_two_that_fail_together_do_not_come_back_together():
    backoff = Backoff()
    assert backoff.seconds(3, Random(1)) != backoff.seconds(3, Random(2))


def test_retry_after_is_honoured():
    assert Backoff(first=1).seconds(1, Random(1), at_least=20) == 20


def test_retry_after_is_capped_at_one_minute():
    assert Backoff(first=1, most=15).seconds(1, Random(1), at_least=3600) == 60


def test_a_thousand_failures_wait_no_longer_than_the_limit():
    assert Backoff(most=30).seconds(1000, Random(1)) <= 30


@pytest.fixture
def failures():
    return Failures(Backoff(first=1.0, most=60.0), Random(1))


def test_the_wait_doubles_up_to_the_limit(failures):
    waits = [failures.wait("a") for _ in range(10)]
    for wait, full in zip(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60], strict=True):
        assert full / 2 <= wait <= full


def test_keys_do_not_share_their_failures(failures):
    for _ in range(5):
        failures.wait("a")
    assert failures.wait("b") <= 1.0


def test_success_is_forgetting(failures):
    for _ in range(5):
        failures.wait("a")
    failures.forget("a")
    assert failures.count("a") == 0
    assert failures.wait("a") <= 1.0


def test_a_key_waits_at_least_as_long_as_the_server_asks(failures):
    assert failures.wait("a", at_least=30) == 30


def test_the_same_seed_waits_alike_and_another_differently():
    one, same, other = (Failures(Backoff(), Random(seed)) for seed in (1, 1, 2))
    assert [one.wait("a") for _ in range(4)] == [same.wait("a") for _ in range(4)]
    assert one.wait("a") != other.wait("a")
