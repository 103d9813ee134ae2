"""Merge patch and its inverse."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeyard.kube.json import json_equal
from nodeyard.kube.patch import merge_diff, merge_patch

names = st.sampled_from(["a", "b", "c"])
scalars = st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0, "", "x"])


def objects(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    values = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=8,
    )
    return st.dictionaries(names, values, max_size=3)


documents = objects(scalars)
patches = objects(st.none() | scalars)


def reference_patch(target: Any, patch: Any) -> Any:
    """RFC 7386, word for word."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = reference_patch(result.get(name), value)
    return result


def without_lists(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(without_lists, value.values()))
    return not isinstance(value, list)


@settings(deadline=None)
@given(documents, patches.filter(without_lists))
def test_a_patch_gives_the_result_of_the_reference(target: Any, patch: Any) -> None:
    assert json_equal(merge_patch(target, patch), reference_patch(target, patch))


@settings(deadline=None)
@given(documents, patches)
def test_a_patch_applied_twice_is_a_patch_applied_once(target: Any, patch: Any) -> None:
    once = merge_patch(target, patch)
    again = merge_patch(once, patch)
    assert json_equal(again, merge_patch(again, patch))
    if without_lists(patch):
        assert again is once


@settings(deadline=None)
@given(documents, patches)
def test_no_argument_is_changed_in_place(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    patched = merge_patch(target, patch)
    assert json_equal([target, patch], list(before))
    assert patched is target or not json_equal(patched, target)


@settings(deadline=None)
@given(documents, documents)
def test_the_difference_leads_from_old_to_new(old: Any, new: Any) -> None:
    difference = merge_diff(old, new)
    if difference is None:
        assert json_equal(old, new)
    else:
        assert json_equal(merge_patch(old, difference), new)
