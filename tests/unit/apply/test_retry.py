"""Pauses between attempts, and the last attempt."""

from random import Random

import pytest

from nodeyard.apply.retry import RetryPolicy
from nodeyard.process.backoff import Backoff


def pauses(policy, asked=None):
    random, found = Random(1), []
    while (pause := policy.pause(len(found) + 1, asked, random)) is not None:
        found.append(pause)
    return found


def test_pauses_grow_and_end():
    first, second, third = pauses(RetryPolicy(4, Backoff(first=1.0, most=3.0)))
    assert 0.5 <= first <= 1 <= second <= 2
    assert 1.5 <= third <= 3


def test_retry_after_is_the_minimum():
    assert all(pause >= 2 for pause in pauses(RetryPolicy(), asked=2))


@pytest.mark.parametrize(("asked", "count"), [(5, 3), (6, 0)])
def test_a_pause_longer_than_the_longest_is_left_to_others(asked, count):
    assert len(pauses(RetryPolicy(4, Backoff(most=5.0)), asked)) == count
