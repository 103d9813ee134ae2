"""A merge patch sets members, removes those that are null, and leaves the rest alone."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.kube.patch import PatchError, merge_diff, merge_patch

NODE = {
    "metadata": {"name": "n1", "labels": {"zone": "a", "tier": "web"}},
    "spec": {"taints": [{"key": "spare"}], "unschedulable": True},
    "status": {"images": [{"names": ["x"]}]},
}


def test_members_are_set_and_null_members_removed() -> None:
    patched = merge_patch(NODE, {"metadata": {"labels": {"zone": "b", "tier": None, "rack": "r1"}}, "spec": None})
    assert patched == {
        "metadata": {"name": "n1", "labels": {"zone": "b", "rack": "r1"}},
        "status": {"images": [{"names": ["x"]}]},
    }


def test_many_nulls_are_removed_in_one_copy() -> None:
    target = {f"k{number}": number for number in range(100_000)}
    patch = {f"k{number}": None for number in range(99_999)}

    assert merge_patch(target, patch) == {"k99999": 99_999}
    assert len(target) == 100_000


def test_lists_are_replaced_as_a_whole() -> None:
    assert merge_patch(NODE, {"spec": {"taints": [{"key": "web"}]}})["spec"]["taints"] == [{"key": "web"}]


def test_untouched_parts_are_the_same_object() -> None:
    patched = merge_patch(NODE, {"metadata": {"labels": {"rack": "r1"}}})
    assert patched["spec"] is NODE["spec"]
    assert patched["status"] is NODE["status"]
    assert "rack" not in NODE["metadata"]["labels"]


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({}, id="empty"),
        pytest.param({"metadata": {"labels": {"zone": "a"}}}, id="same-value"),
        pytest.param({"spec": {"taints": [{"key": "spare"}]}}, id="same-list"),
        pytest.param({"spec": {"podCIDR": None}}, id="nothing-to-remove"),
    ],
)
def test_a_patch_that_changes_nothing_returns_its_target(patch: Any) -> None:
    assert merge_patch(NODE, patch) is NODE


def test_a_number_of_another_type_is_a_change() -> None:
    assert merge_patch({"n": 1}, {"n": True})["n"] is True
    assert isinstance(merge_patch({"n": 1}, {"n": 1.0})["n"], float)


@pytest.mark.parametrize(
    ("target", "patch", "patched"),
    [
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="in-a-new-object"),
        pytest.param({}, {"a": [{"b": None}, None]}, {"a": [{}, None]}, id="in-objects-of-a-new-list"),
        pytest.param({"a": [1]}, {"a": [{"b": None}]}, {"a": [{}]}, id="in-objects-of-a-list-that-replaces-a-list"),
        pytest.param(
            {"a": {}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}, id="but-not-where-a-list-replaces-an-object"
        ),
        pytest.param({"a": "x"}, {"a": {"b": None}}, {"a": {}}, id="in-an-object-that-replaces-a-scalar"),
    ],
)
def test_null_members_of_what_is_set_are_dropped(target: Any, patch: Any, patched: Any) -> None:
    assert merge_patch(target, patch) == patched


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (None, "Invalid JSON Patch"),
        ([], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (5, "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}"),
        ("x", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (True, "error decoding patch: json: cannot unmarshal bool into Go value of type map[string]interface {}"),
    ],
)
def test_only_an_object_is_a_merge_patch(patch: Any, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        merge_patch(NODE, patch)
    assert (caught.value.code, caught.value.reason, str(caught.value)) == (400, "BadRequest", message)


def test_a_difference_is_a_patch_from_the_old_to_the_new() -> None:
    new = {
        "metadata": {"name": "n1", "labels": {"zone": "b"}},
        "spec": {"taints": [], "unschedulable": True},
        "status": NODE["status"],
    }
    difference = merge_diff(NODE, new)
    assert difference == {"metadata": {"labels": {"zone": "b", "tier": None}}, "spec": {"taints": []}}
    assert merge_patch(NODE, difference) == new


def test_there_is_no_difference_between_equals() -> None:
    assert merge_diff(NODE, {**NODE}) is None
    assert merge_diff({"a": None}, {}) is None
