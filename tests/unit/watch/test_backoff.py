"""Waits grow, are bounded, and differ between two that fail together."""

from random import Random

from nodeyard.watch.backoff import Backoff


def test_each_wait_is_between_half_and_all_of_twice_the_last():
    random = Random(1)
    waits = [Backoff(first=1, most=8).seconds(failures, random) for failures in (1, 2, 3, 4, 5)]
    for wait, full in zip(waits, (1, 2, 4, 8, 8), strict=True):
        assert full / 2 <= wait <= full


def test_two_that_fail_together_do_not_come_back_together():
    backoff = Backoff()
    assert backoff.seconds(3, Random(1)) != backoff.seconds(3, Random(2))


def test_the_server_is_given_the_time_it_asks_for():
    assert Backoff(first=1).seconds(1, Random(1), at_least=20) == 20


def test_a_server_that_asks_for_an_hour_is_asked_again_after_a_minute():
    assert Backoff(first=1, most=15).seconds(1, Random(1), at_least=3600) == 60


def test_a_thousand_failures_wait_no_longer_than_the_limit():
    assert Backoff(most=30).seconds(1000, Random(1)) <= 30
