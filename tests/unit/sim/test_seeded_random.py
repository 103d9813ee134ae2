"""A random number depends on the seed and on what it is drawn for."""

from nodeyard.sim.seeded_random import SeededRandom


def test_the_same_seed_gives_the_same_values_in_any_order():
    one, other = SeededRandom(7), SeededRandom(7)
    first = [one.random("delay", name) for name in "abc"]
    second = [other.random("delay", name) for name in "cba"]
    assert first == second[::-1]


def test_another_seed_gives_other_values():
    assert SeededRandom(7).random("delay", "a") != SeededRandom(8).random("delay", "a")


def test_draws_are_spread_over_their_range():
    draws = [SeededRandom(-3).uniform(2, 4, "x", number) for number in range(2000)]
    assert all(2 <= draw < 4 for draw in draws)
    assert 2.95 < sum(draws) / len(draws) < 3.05


def test_suffixes_look_like_those_of_kubernetes():
    suffix = SeededRandom(1).suffix(5, "scale", "set", 1)
    assert len(suffix) == 5
    assert set(suffix) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert suffix != SeededRandom(1).suffix(5, "scale", "set", 2)
