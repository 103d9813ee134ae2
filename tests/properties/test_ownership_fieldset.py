"""Field sets behave as sets of paths do."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeyard.apiserver.managed_fields.codec import decode_fields
from nodeyard.apiserver.managed_fields.fieldset import (
    difference,
    field_set,
    includes,
    intersection,
    members,
    union,
    without,
)
from nodeyard.apiserver.managed_fields.paths import SELF, order

elements = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"name":"x"}', 'k:{"port":80}', 'v:"x"', "v:9", "v:10"])
paths = st.lists(elements, min_size=1, max_size=3).map(tuple)
path_sets = st.frozensets(paths, max_size=7)


def check_form(fields: dict[str, Any], *, is_top: bool = True) -> None:
    """A dot stands only beside children, nothing is below it, and elements are in order."""
    assert list(fields) == sorted(fields, key=order)
    if SELF in fields:
        assert not is_top
        assert len(fields) > 1
    for element, node in fields.items():
        if element != SELF:
            check_form(node, is_top=False)


@settings(deadline=None)
@given(path_sets)
def test_a_set_has_the_paths_it_was_made_of(given_paths: frozenset[Any]) -> None:
    fields = field_set(*given_paths)
    check_form(fields)
    assert set(members(fields)) == given_paths


@settings(deadline=None)
@given(path_sets, path_sets)
def test_the_algebra_is_that_of_sets(left: frozenset[Any], right: frozenset[Any]) -> None:
    ours, theirs = field_set(*left), field_set(*right)
    for combine, expected in ((union, left | right), (difference, left - right), (intersection, left & right)):
        combined = combine(ours, theirs)
        check_form(combined)
        assert set(members(combined)) == expected


@settings(deadline=None)
@given(path_sets, path_sets)
def test_the_difference_removes_everything_below(left: frozenset[Any], right: frozenset[Any]) -> None:
    rest = without(field_set(*left), field_set(*right))
    check_form(rest)
    assert set(members(rest)) == {path for path in left if not any(path[: len(top)] == top for top in right)}


@settings(deadline=None)
@given(path_sets, path_sets)
def test_an_operation_without_effect_returns_the_same_object(left: frozenset[Any], right: frozenset[Any]) -> None:
    ours, theirs = field_set(*left), field_set(*right)
    if right <= left:
        assert union(ours, theirs) is ours
        assert includes(ours, theirs)
    if not left & right:
        assert difference(ours, theirs) is ours


@settings(deadline=None)
@given(path_sets)
def test_the_form_of_fields_v1_reads_back(given_paths: frozenset[Any]) -> None:
    fields = field_set(*given_paths)
    assert decode_fields(fields) == fields
