"""The diff has an entry exactly for each difference; the preview of an apply is idempotent."""

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.kube.json import json_equal
from nodeyard.kube.patch import merge_diff, merge_patch
from nodeyard.plan.apply_preview import has_fields, merge_fields
from nodeyard.plan.diff import diff, diff_patch

NAMES = st.sampled_from(["a", "b", "labels", "taints", "finalizers", "items", "example.com/x"])
SCALARS = st.one_of(st.booleans(), st.integers(0, 3), st.sampled_from(["", "x", "y"]))
ITEMS = st.one_of(
    st.dictionaries(st.sampled_from(["name", "key", "effect", "value"]), st.sampled_from(["x", "y"]), max_size=3),
    SCALARS,
)
VALUES = st.recursive(
    st.one_of(SCALARS, st.lists(ITEMS, max_size=3)),
    lambda inner: st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_diff_is_empty_exactly_where_the_objects_are_the_same(old, new):
    assert (diff(old, new) == ()) == json_equal(old, new)


@given(OBJECTS, OBJECTS)
def test_no_path_appears_twice_and_paths_are_in_order_of_the_fields(old, new):
    paths = [each.path for each in diff(old, new)]
    assert len(paths) == len(set(paths))
    assert diff(old, new) == diff(dict(reversed(old.items())), dict(reversed(new.items())))


@given(OBJECTS, OBJECTS)
def test_a_reversed_diff_has_from_and_to_swapped(old, new):
    there = {(each.path, repr(each.from_), repr(each.to)) for each in diff(old, new)}
    back = {(each.path, repr(each.to), repr(each.from_)) for each in diff(new, old)}
    assert there == back


@given(OBJECTS, OBJECTS)
def test_the_diff_of_a_patch_equals_the_diff_of_its_result(old, new):
    patch = merge_diff(old, new) or {}
    assert diff_patch(old, patch) == diff(old, merge_patch(old, patch))


@given(OBJECTS, OBJECTS)
def test_applied_fields_are_stored_and_applying_again_changes_nothing(old, fields):
    after = merge_fields(old, fields)
    assert has_fields(after, fields)
    assert merge_fields(after, fields) is after
