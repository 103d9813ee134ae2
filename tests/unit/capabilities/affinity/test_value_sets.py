"""Sets of values that a label may have."""

import pytest

from nodeyard.capabilities.affinity.planning.value_sets import (
    ANY,
    PRESENT,
    exclude,
    fresh_number,
    fresh_text,
    intersect,
    narrow,
    only,
)
from nodeyard.kube.selectors import Operator, Requirement

ZEROS = ["0" * width for width in range(1, 64)]


def domain_of(*steps):
    domain = ANY
    for operator, *values in steps:
        domain = narrow(domain, Requirement("key", operator, tuple(values)))
    return domain


IN, NOT_IN, EXISTS, ABSENT = Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST
GREATER, LESS = Operator.GREATER, Operator.LESS


@pytest.mark.parametrize(
    ("steps", "allowed", "refused"),
    [
        ([], [None, "", "a", "1"], []),
        ([(EXISTS,)], ["", "a"], [None]),
        ([(ABSENT,)], [None], ["", "a"]),
        ([(IN, "a", "b")], ["a", "b"], [None, "c"]),
        ([(NOT_IN, "a")], [None, "b"], ["a"]),
        ([(NOT_IN, "a"), (NOT_IN, "b"), (EXISTS,)], ["c"], [None, "a", "b"]),
        ([(IN, "a", "b"), (NOT_IN, "a")], ["b"], [None, "a", "c"]),
        ([(NOT_IN, "a"), (IN, "a", "b")], ["b"], [None, "a", "c"]),
        ([(NOT_IN, "a"), (ABSENT,)], [None], ["a", "b"]),
        ([(GREATER, "4")], ["5", "05", "9223372036854775807"], [None, "4", "a", "9223372036854775808"]),
        ([(LESS, "4")], ["0", "3", "003"], [None, "4", "a", ""]),
        ([(GREATER, "4"), (LESS, "7"), (NOT_IN, "5")], ["05", "6"], [None, "5", "7"]),
        ([(IN, "3", "5", "a"), (GREATER, "4")], ["5"], [None, "3", "a"]),
        ([(GREATER, "4"), (IN, "3", "5", "a")], ["5"], [None, "3", "a"]),
    ],
    ids=str,
)
def test_requirements_narrow(steps, allowed, refused):
    domain = domain_of(*steps)
    assert [value for value in (*allowed, *refused) if domain.allows(value)] == allowed
    assert not domain.is_empty


@pytest.mark.parametrize(
    "steps",
    [
        [(ABSENT,), (EXISTS,)],
        [(IN, "a"), (ABSENT,)],
        [(IN, "a"), (IN, "b")],
        [(IN, "a"), (NOT_IN, "a")],
        [(IN, "a"), (GREATER, "0")],
        [(ABSENT,), (GREATER, "0")],
        [(GREATER, "4"), (LESS, "5")],
        [(LESS, "0")],
        [(GREATER, "9223372036854775807")],
        [(LESS, "1"), (NOT_IN, *ZEROS)],
    ],
    ids=lambda steps: str(steps)[:60],
)
def test_the_intersection_is_empty(steps):
    assert domain_of(*steps).is_empty


def test_the_last_spelling_of_a_number_is_found():
    assert not domain_of((LESS, "1"), (NOT_IN, *ZEROS[:-1])).is_empty
    assert fresh_number(range(1), frozenset(ZEROS[:-1])) == ZEROS[-1]
    assert fresh_number(range(1), frozenset(ZEROS)) is None


def test_a_fresh_number_is_plain_if_it_can_be():
    assert fresh_number(range(5, 2**63), frozenset()) == "5"
    assert fresh_number(range(5, 2**63), frozenset({"5", "6"})) == "7"
    assert fresh_number(range(5, 7), frozenset({"5", "6"})) == "05"
    assert fresh_number(range(5, 5), frozenset()) is None


def test_a_sample_value_is_unused():
    assert fresh_text(()) == "other"
    assert fresh_text({"other", "other-2"}) == "other-3"


def test_values_are_chosen_and_struck_out():
    assert intersect(only("ab"), "bc") == only("b")
    assert exclude(only("ab"), "bc") == only("a")
    assert exclude(PRESENT, "a").allows("b")
    assert not exclude(PRESENT, "a").allows("a")
