"""Chance depends on what it is drawn for, and on nothing else."""

from nodeyard.sim.seeded_random import Chance


def test_the_same_seed_gives_the_same_fate_in_any_order():
    one, other = Chance(7), Chance(7)
    first = [one.draw("delay", name) for name in "abc"]
    second = [other.draw("delay", name) for name in "cba"]
    assert first == second[::-1]


def test_another_seed_gives_another_fate():
    assert Chance(7).draw("delay", "a") != Chance(8).draw("delay", "a")


def test_draws_are_spread_over_their_range():
    draws = [Chance(-3).between(2, 4, "x", number) for number in range(2000)]
    assert all(2 <= draw < 4 for draw in draws)
    assert 2.95 < sum(draws) / len(draws) < 3.05


def test_suffixes_look_like_those_of_kubernetes():
    suffix = Chance(1).suffix(5, "scale", "set", 1)
    assert len(suffix) == 5
    assert set(suffix) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert suffix != Chance(1).suffix(5, "scale", "set", 2)
