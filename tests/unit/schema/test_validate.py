"""Validation: skipped rules, parts of objects, recursive types, wide integers and formats."""

from __future__ import annotations

import pytest

from nodeyard.kube.fields import FieldError, forbidden, invalid, required
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.formats import is_checked, string_check
from nodeyard.schema.model import Schema
from nodeyard.schema.validate import blocked_rules_error, validate, value_faults


@pytest.mark.parametrize(
    ("faults", "is_blocked"),
    [
        ([], False),
        ([invalid("spec.x", 1, "should be more")], False),
        ([forbidden("spec.x", "no")], False),
        ([required("spec.x")], True),
    ],
)
def test_some_faults_block_the_rules(faults: list[FieldError], is_blocked: bool) -> None:
    error = blocked_rules_error(faults)

    assert (error is not None) is is_blocked
    if error is not None:
        assert str(error) == (
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
            "correct the existing errors to complete validation"
        )


def test_a_value_of_the_wrong_type_blocks_the_rules() -> None:
    schema = compile_schema({"type": "object", "properties": {"x": {"type": "integer"}}})

    assert blocked_rules_error(validate(schema, {"x": "text"})) is not None


def test_paths_of_a_value_validated_alone_start_at_it() -> None:
    schema = compile_schema({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]})

    assert [str(fault) for fault in value_faults(schema, {"a": 1}, path="spec.default")] == [
        'spec.default.a: Invalid value: "integer": a in body must be of type string: "integer"',
        "spec.default.b: Required value",
    ]


def test_the_same_fault_from_two_branches_is_reported_once() -> None:
    schema = compile_schema({"type": "integer", "minimum": 3, "allOf": [{"minimum": 3}, {"minimum": 3}]})

    assert [fault.detail for fault in value_faults(schema, 1)] == [
        " in body should be greater than or equal to 3",
        '"" must validate all the schemas (allOf). None validated',
    ]


def test_recursive_types_are_validated() -> None:
    tree = Schema(type="object")
    tree.properties["child"] = tree
    tree.properties["name"] = Schema(type="string", max_length=1)

    assert [fault.field for fault in value_faults(tree, {"child": {"child": {"name": "xx"}}})] == ["child.child.name"]


def test_an_integer_beyond_64_bits_is_a_float() -> None:
    schema = compile_schema({"type": "integer"})

    assert value_faults(schema, 2**63 - 1) == []
    assert [fault.detail for fault in value_faults(schema, 2**63)] == [
        ' in body must be of type integer: "number"',
        "Checked value must be of type integer (default format) in ",
    ]


def test_a_format_is_checked_only_on_types_where_the_server_does() -> None:
    assert [is_checked("string", name) for name in ("date-time", "datetime", "ip", "int32")] == [
        True,
        True,
        False,
        False,
    ]
    assert [is_checked("integer", name) for name in ("int32", "int64", "uint8", "date")] == [True, True, False, False]
    assert is_checked("", "ipv4")
    assert not is_checked("object", "ipv4")
    assert string_check("nonsense") is None


@pytest.mark.parametrize(
    ("name", "text", "is_valid"),
    [
        ("email", "a" * 30, False),
        ("email", "a " * 30, False),
        ("email", f"{'a (b) ' * 30}<a@b>", True),
        ("duration", "1" * 5000 + "h", False),
        ("duration", "0" * 5000 + "1 hour", True),
        ("duration", "2 days 3h", True),
    ],
)
def test_formats_of_long_ambiguous_texts_are_checked(name: str, text: str, is_valid: bool) -> None:
    check = string_check(name)

    assert check is not None
    assert check(text) is is_valid
