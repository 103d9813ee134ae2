"""Selectors of many requirements select what each requirement selects, and cost little more."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.kube.selectors import LabelSelector, parse_fields, parse_labels
from nodeyard.kube.selectors.fields import FieldRequirement, FieldSelector
from nodeyard.kube.selectors.labels import ORDERED, SETS, UNARY, Operator, Requirement

KEYS = ("a", "b", "c", "d")
VALUES = ("", "1", "2", "3", "x")


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(Operator))
    if operator in UNARY:
        values: tuple[str, ...] = ()
    elif operator in ORDERED:
        values = (draw(st.sampled_from(("0", "1", "2", "3"))),)
    else:
        values = tuple(draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=5 if operator in SETS else 1)))
    return Requirement(draw(st.sampled_from(KEYS)), operator, values)


labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


@given(st.lists(requirements(), max_size=40), labels)
def test_a_selector_matches_what_each_of_its_requirements_matches(wanted: list[Requirement], given: dict) -> None:
    expected = all(LabelSelector([each]).matches(given) for each in wanted)

    assert LabelSelector([*wanted, *wanted]).matches(given) is expected


field_requirements = st.builds(
    FieldRequirement, st.sampled_from(KEYS), st.sampled_from(("=", "!=")), st.sampled_from(VALUES)
)


@given(st.lists(field_requirements, max_size=6), labels)
def test_a_field_selector_matches_what_each_of_its_requirements_matches(
    wanted: list[FieldRequirement], given: dict
) -> None:
    expected = all((given.get(name, "") == value) is (operator == "=") for name, operator, value in wanted)

    assert FieldSelector(wanted).matches(given) is expected


@pytest.mark.parametrize(
    "selector",
    [
        parse_labels(",".join(f"!k{number},l{number}!=v" for number in range(1000))),
        parse_labels(",".join(f"a>{number},a!=x{number}" for number in range(1000))),
        parse_fields(",".join(f"a!=x{number}" for number in range(1000))),
    ],
    ids=["labels", "bounds", "fields"],
)
def test_a_selector_of_a_thousand_requirements_costs_little_more_than_one(selector):
    start = time.thread_time()
    assert all(selector.matches({"a": "1000", "b": "2"}) for _ in range(10_000))
    assert time.thread_time() - start < 0.5
