"""JSON patch with the API server's deviations."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.kube.patch import MAX_OPERATIONS, REJECTED, PatchError, json_patch, unknown_members

DOCUMENT = {"a": {"b": 1}, "list": [1, 2, 3], "x/y": "slash", "m~n": "tilde", "nothing": None}


def op(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("operation", "changed"),
    [
        pytest.param(op("add", "/a/c", value=2), {"a": {"b": 1, "c": 2}}, id="add"),
        pytest.param(op("add", "/a/b", value=2), {"a": {"b": 2}}, id="add-over"),
        pytest.param(op("add", "/a/c"), {"a": {"b": 1, "c": None}}, id="add-without-value-adds-null"),
        pytest.param(op("add", "/list/1", value=9), {"list": [1, 9, 2, 3]}, id="insert"),
        pytest.param(op("add", "/list/3", value=9), {"list": [1, 2, 3, 9]}, id="insert-at-the-end"),
        pytest.param(op("add", "/list/-", value=9), {"list": [1, 2, 3, 9]}, id="append"),
        pytest.param(op("add", "/list/-1", value=9), {"list": [1, 2, 3, 9]}, id="insert-from-the-end"),
        pytest.param(op("remove", "/list/0"), {"list": [2, 3]}, id="remove-item"),
        pytest.param(op("remove", "/list/-1"), {"list": [1, 2]}, id="remove-from-the-end"),
        pytest.param(op("replace", "/list/1", value={}), {"list": [1, {}, 3]}, id="replace-item"),
        pytest.param(
            op("replace", "/a/new", value=2), {"a": {"b": 1, "new": 2}}, id="replace-of-a-missing-member-adds"
        ),
        pytest.param(op("replace", "/x~1y", value=2), {"x/y": 2}, id="escaped-slash"),
        pytest.param(op("replace", "/m~0n", value=2), {"m~n": 2}, id="escaped-tilde"),
        pytest.param(op("move", "/list/0", **{"from": "/list/2"}), {"list": [3, 1, 2]}, id="move"),
        pytest.param(op("copy", "/list/-", **{"from": "/a"}), {"list": [1, 2, 3, {"b": 1}]}, id="copy"),
        pytest.param(
            op("copy", "/a/c", **{"from": "/a/none"}), {"a": {"b": 1, "c": None}}, id="copy-of-nothing-is-null"
        ),
    ],
)
def test_an_operation_changes_what_it_names(operation: dict[str, Any], changed: dict[str, Any]) -> None:
    assert json_patch(DOCUMENT, [operation]) == {**DOCUMENT, **changed}


def test_removed_members_are_gone() -> None:
    assert "x/y" not in json_patch(DOCUMENT, [op("remove", "/x~1y")])


@pytest.mark.parametrize(
    "operation",
    [
        op("test", "/a", value={"b": 1}),
        op("test", "/list/1", value=2),
        op("test", "/nothing", value=None),
        op("test", "/missing", value=None),
        op("test", "", value=DOCUMENT),
        op("replace", "/a/b", value=1),
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
def test_a_patch_without_changes_returns_the_target(operation: dict[str, Any]) -> None:
    assert json_patch(DOCUMENT, [operation]) is DOCUMENT


@pytest.mark.parametrize(
    "operation",
    [
        op("test", "/a/b", value=2),
        op("test", "/a/b", value=True),
        op("test", "/a/b", value=1.0),
        op("test", "/list/7", value=1),
        op("test", "/none/b", value=1),
        op("test", "", value={}),
        op("remove", "/none"),
        op("remove", "/none/b"),
        op("remove", "/list/3"),
        op("remove", "/list/x"),
        op("remove", "/list/-"),
        op("add", "", value={}),
        op("add", "no-slash", value=1),
        op("add", "/list/5", value=1),
        op("add", "/list/-5", value=1),
        op("add", "/list/" + "9" * 5000, value=1),
        op("add", "/list/one", value=1),
        op("add", "/a/b/c", value=1),
        op("add", "/nothing/c", value=1),
        op("replace", "/list/3", value=1),
        op("replace", "", value=5),
        op("move", "/z", **{"from": "/none"}),
        op("move", "/none/z", **{"from": "/a"}),
        op("move", "/z"),
        op("copy", "/z"),
        op("copy", "/z", **{"from": "/none/x"}),
        op("frobnicate", "/a"),
        {"op": "add", "value": 1},
        {"path": "/a"},
        None,
    ],
    ids=str,
)
def test_an_operation_that_does_not_apply_refuses_the_patch(operation: Any) -> None:
    with pytest.raises(PatchError, match=REJECTED) as caught:
        json_patch(DOCUMENT, [op("add", "/new", value=1), operation])
    assert (caught.value.code, caught.value.reason) == (422, "Invalid")
    assert caught.value.why != REJECTED
    assert "new" not in DOCUMENT


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ({"op": "add"}, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ([1], "cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        ([{"op": 1}], "cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        ([{"op": "add", "path": []}], "cannot unmarshal array into Go struct field jsonPatchOp.path of type string"),
        ([{"op": "add", "from": {}}], "cannot unmarshal object into Go struct field jsonPatchOp.from of type string"),
    ],
)
def test_an_invalid_patch_is_a_bad_request(operations: Any, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch(DOCUMENT, operations)
    assert (caught.value.code, str(caught.value)) == (400, f"error decoding patch: json: {message}")


def test_null_is_a_patch_of_no_operations() -> None:
    assert json_patch(DOCUMENT, None) is DOCUMENT
    assert json_patch(DOCUMENT, []) is DOCUMENT


def test_there_is_a_limit_to_the_number_of_operations() -> None:
    operation = op("test", "/a/b", value=1)
    assert json_patch(DOCUMENT, [operation] * MAX_OPERATIONS) is DOCUMENT
    with pytest.raises(PatchError) as caught:
        json_patch(DOCUMENT, [operation] * (MAX_OPERATIONS + 1))
    assert (caught.value.code, caught.value.reason) == (413, "RequestEntityTooLarge")
    assert str(caught.value) == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


def test_untouched_parts_are_the_same_object() -> None:
    patched = json_patch(DOCUMENT, [op("add", "/a/c", value=2)])
    assert patched["list"] is DOCUMENT["list"]
    assert DOCUMENT["a"] == {"b": 1}


def test_a_copy_does_not_change_with_its_original() -> None:
    operations = [op("add", "/a/c", value=2), op("copy", "/z", **{"from": "/a"}), op("replace", "/a/c", value=3)]
    assert json_patch(DOCUMENT, operations)["z"] == {"b": 1, "c": 2}


def test_the_value_of_an_operation_is_not_changed_by_a_later_one() -> None:
    value: dict[str, Any] = {}
    patched = json_patch(DOCUMENT, [op("add", "/z", value=value), op("add", "/z/k", value=1)])
    assert patched["z"] == {"k": 1}
    assert value == {}


def test_replacing_the_whole_document_replaces_it() -> None:
    assert json_patch(DOCUMENT, [op("replace", "", value={"k": 1})]) == {"k": 1}


def test_members_that_no_operation_has_are_named() -> None:
    operations = [op("add", "/a", value=1), {"op": "test", "path": "/a", "val": 1, "why": ""}, None]
    assert unknown_members(operations) == ["[1].val", "[1].why"]
