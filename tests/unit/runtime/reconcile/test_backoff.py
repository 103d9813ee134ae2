"""Each key fails and recovers for itself."""

from random import Random

import pytest

from nodeyard.runtime.reconcile.backoff import Failures
from nodeyard.watch.backoff import Backoff


@pytest.fixture
def failures():
    return Failures(Random(1), Backoff(first=1.0, most=60.0))


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


def test_what_the_server_asks_for_is_the_least(failures):
    assert failures.wait("a", at_least=30) == 30


def test_the_same_seed_waits_alike_and_another_differently():
    one, same, other = (Failures(Random(seed)) for seed in (1, 1, 2))
    assert [one.wait("a") for _ in range(4)] == [same.wait("a") for _ in range(4)]
    assert one.wait("a") != other.wait("a")
