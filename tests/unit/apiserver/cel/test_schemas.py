"""JSON as CEL values: used unchanged, or converted on access."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.cel import EvaluationError
from nodeyard.apiserver.cel.identifiers import escape
from nodeyard.apiserver.cel.schemas import adapter, declare
from nodeyard.apiserver.cel.values import MISSING, Duration, MapList, ObjectValue, SetList, Timestamp
from nodeyard.schema.compile import compile_schema

INTEGER = {"type": "integer"}


def adapted(openapi: dict[str, Any], value: Any) -> Any:
    convert = adapter(compile_schema(openapi))
    return value if convert is None else convert(value)


@pytest.mark.parametrize(
    "openapi",
    [
        INTEGER,
        {"type": "string"},
        {"x-kubernetes-int-or-string": True},
        {"type": "object", "properties": {"a": INTEGER, "b": {"type": "array", "items": {"type": "string"}}}},
        {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": INTEGER}}},
        {"type": "array", "items": {"type": "object", "properties": {"a": INTEGER}}},
    ],
)
def test_plain_json_is_not_touched(openapi: dict[str, Any]) -> None:
    assert adapter(compile_schema(openapi)) is None


@pytest.mark.parametrize(
    "property_",
    [
        {"a-b": INTEGER},
        {"a": {"type": "number"}},
        {"a": {**INTEGER, "nullable": True}},
        {"a": {"type": "string", "format": "date-time"}},
        {"a": {"type": "array", "x-kubernetes-list-type": "set", "items": INTEGER}},
        {"a": {"x-kubernetes-preserve-unknown-fields": True}},
    ],
)
def test_an_object_with_anything_special_in_it_is_looked_at_field_by_field(property_: dict[str, Any]) -> None:
    assert isinstance(adapted({"type": "object", "properties": property_}, {}), ObjectValue)


def test_fields_are_converted_by_their_schema() -> None:
    value = adapted(
        {
            "type": "object",
            "properties": {
                "number": {"type": "number"},
                "when": {"type": "string", "format": "date-time"},
                "wait": {"type": "string", "format": "duration"},
                "data": {"type": "string", "format": "byte"},
                "gone": {"type": "string", "nullable": True},
                "x-y": {"type": "object", "additionalProperties": {"type": "number"}},
            },
        },
        {
            "number": 1,
            "when": "1970-01-01T00:00:01Z",
            "wait": "1s",
            "data": "YQ==",
            "gone": None,
            "x-y": {"k": 2},
            "stray": 1,
        },
    )

    assert value.find("number").__class__ is float
    assert value.find("when") == Timestamp(10**9)
    assert value.find("wait") == Duration(10**9)
    assert value.find("data") == b"a"
    assert value.find("gone") is MISSING
    assert value.find("x__dash__y") == {"k": 2.0}
    assert value.find("x-y") is MISSING
    assert value.find("stray") is MISSING


def test_lists_know_their_list_type() -> None:
    items = {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"]}

    as_set = adapted({"type": "array", "x-kubernetes-list-type": "set", "items": INTEGER}, [1])
    as_map = adapted(
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": items},
        [{"k": "a"}],
    )

    assert isinstance(as_set, SetList)
    assert isinstance(as_map, MapList)
    assert as_map.key_of(as_map[0]) == ("a",)


def test_a_value_in_the_wrong_format_is_an_error_when_it_is_used() -> None:
    value = adapted({"type": "object", "properties": {"a": {"type": "string", "format": "byte"}}}, {"a": "?"})

    with pytest.raises(EvaluationError, match=r"^Invalid byte formatted string \?"):
        value.find("a")


@pytest.mark.parametrize(
    ("openapi", "declared"),
    [
        ({"type": "array", "items": {"type": "number"}}, "list(double)"),
        ({"type": "object", "additionalProperties": INTEGER}, "map(string, int)"),
        ({"x-kubernetes-int-or-string": True}, "dyn"),
        ({"type": "string", "format": "date"}, "timestamp"),
        ({"type": "string", "format": "ipv4"}, "string"),
        ({"type": "object", "additionalProperties": True}, "self"),
        ({"type": "array", "items": {"type": "object"}}, "list(self.@idx)"),
        ({"x-kubernetes-preserve-unknown-fields": True}, "None"),
        ({"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}, "None"),
    ],
)
def test_a_schema_has_a_type(openapi: dict[str, Any], declared: str) -> None:
    assert str(declare(compile_schema(openapi), "self")) == declared


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain", "plain"),
        ("_a1", "_a1"),
        ("a-b", "a__dash__b"),
        ("a.b/c", "a__dot__b__slash__c"),
        ("a__b", "a__underscores__b"),
        ("namespace", "__namespace__"),
        ("in", "__in__"),
        ("$ref", None),
        ("1a", None),
        ("", None),
    ],
)
def test_names_are_escaped(name: str, escaped: str | None) -> None:
    assert escape(name) == escaped
