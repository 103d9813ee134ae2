"""Functions that were made at different moments and mean the same."""

from functools import partial

import pytest

from nodeyard.watch.function_equality import are_equivalent


def by(field):
    return lambda obj: [obj[field]]


def nested(field):
    inner = by(field)
    return lambda obj: inner(obj)


def recursive():
    def walk(obj):
        return walk(obj)

    return walk


def pick(field, obj):
    return [obj[field]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (by("a"), by("a")),
        (nested("a"), nested("a")),
        (partial(pick, "a"), partial(pick, "a")),
        (partial(pick, field="a"), partial(pick, field="a")),
        ((by("a"), by("b")), (by("a"), by("b"))),
        (pick, pick),
    ],
    ids=["closure", "closure in a closure", "partial", "partial by name", "several", "the same"],
)
def test_the_same_code_over_the_same_values_is_the_same(one, other):
    assert are_equivalent(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (by("a"), by("b")),
        (by("a"), nested("a")),
        (partial(pick, "a"), partial(pick, "b")),
        (partial(pick, "a"), by("a")),
        ((by("a"),), (by("a"), by("a"))),
        (by("a"), None),
    ],
    ids=["other value", "other code", "other argument", "other kind", "fewer", "none"],
)
def test_other_code_or_other_values_are_not(one, other):
    assert not are_equivalent(one, other)


def test_a_function_that_encloses_itself_is_not_followed_forever():
    assert not are_equivalent(recursive(), recursive())
