"""The JSON patch between two objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from nodeyard.admission.json_patch import difference
from nodeyard.kube.json import json_equal
from nodeyard.kube.patch import json_patch

scalars = some.none() | some.booleans() | some.integers(-3, 3) | some.sampled_from(["", "a", "b", "~", "a/b"])
values = some.recursive(
    scalars,
    lambda inner: (
        some.lists(inner, max_size=4)
        | some.dictionaries(some.sampled_from(["a", "b", "c/d", "~e", ""]), inner, max_size=4)
    ),
    max_leaves=12,
)
objects = some.dictionaries(some.sampled_from(["spec", "meta/data", "~", "x"]), values, max_size=4)


@given(objects, objects)
def test_the_patch_turns_the_old_into_the_new(old, new):
    assert json_equal(json_patch(old, list(difference(old, new))), new)


@given(objects)
def test_equal_objects_need_no_patch(old):
    assert list(difference(old, old)) == []


@pytest.mark.parametrize(
    ("old", "new", "operations"),
    [
        ({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({}, {"x/y": {}}, [{"op": "add", "path": "/x~1y", "value": {}}]),
        ({"~": 1}, {}, [{"op": "remove", "path": "/~0"}]),
        ({"l": [1, 2, 3]}, {"l": [1]}, [{"op": "remove", "path": "/l/2"}, {"op": "remove", "path": "/l/1"}]),
        ({"l": [1]}, {"l": [1, 2]}, [{"op": "add", "path": "/l/-", "value": 2}]),
        (
            {"l": [{"n": "a", "v": 1}]},
            {"l": [{"n": "a", "v": 2}]},
            [{"op": "replace", "path": "/l/0/v", "value": 2}],
        ),
    ],
    ids=["replaced", "of-another-type", "escaped", "removed", "shortened", "appended", "inside-a-list"],
)
def test_the_patch_contains_only_the_change(old, new, operations):
    assert list(difference(old, new)) == operations
