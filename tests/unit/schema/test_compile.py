"""Compiling openAPIV3Schema to Schema."""

from __future__ import annotations

from nodeyard.schema.compile import OPEN, compile_schema
from nodeyard.schema.model import UNSET, Rule


def test_every_keyword_is_compiled() -> None:
    schema = compile_schema(
        {
            "type": "object",
            "description": "all of it",
            "required": ["b", "a"],
            "minProperties": 1,
            "maxProperties": 9,
            "properties": {
                "a": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 2,
                    "pattern": "^a",
                    "format": "date",
                    "default": "a",
                },
                "b": {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 9, "multipleOf": 2},
                "c": {"x-kubernetes-int-or-string": True, "nullable": True},
                "d": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 2,
                    "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k", "l"],
                },
                "e": {"type": "object", "x-kubernetes-embedded-resource": True},
                "f": {"type": "string", "enum": ["x", None]},
            },
        }
    )

    a, b, c, d, e, f = (schema.properties[name] for name in "abcdef")
    assert (schema.description, schema.required, schema.min_properties, schema.max_properties) == (
        "all of it",
        ("b", "a"),
        1,
        9,
    )
    assert (a.min_length, a.max_length, a.pattern, a.format, a.default) == (1, 2, "^a", "date", "a")
    assert (b.minimum, b.exclusive_minimum, b.maximum, b.exclusive_maximum, b.multiple_of) == (1, True, 9, False, 2)
    assert (c.int_or_string, c.nullable, c.default) == (True, True, UNSET)
    assert (d.list_type, d.list_map_keys, d.min_items, d.max_items) == ("map", ("k", "l"), 1, 2)
    assert d.items is not None
    assert d.items.map_type == "atomic"
    assert e.embedded
    assert f.enum == ("x", None)


def test_branches_are_compiled_to_schemas() -> None:
    schema = compile_schema(
        {
            "type": "integer",
            "allOf": [{"minimum": 1}],
            "anyOf": [{"minimum": 2}, {"minimum": 3}],
            "oneOf": [{"minimum": 4}],
            "not": {"minimum": 5},
        }
    )

    branches = (*schema.all_of, *schema.any_of, *schema.one_of, schema.not_)
    assert [branch.minimum for branch in branches if branch is not None] == [1, 2, 3, 4, 5]


def test_explicit_defaults_are_left_out() -> None:
    schema = compile_schema({"type": "string", "default": None, "enum": [], "nullable": False, "properties": None})

    assert (schema.default, schema.enum, schema.nullable, schema.properties) == (UNSET, None, False, {})


def test_additional_properties_may_be_a_schema_or_a_boolean() -> None:
    typed, opened, closed = (
        compile_schema({"type": "object", "additionalProperties": given}) for given in ({"type": "string"}, True, False)
    )

    assert typed.additional is not None
    assert typed.additional.type == "string"
    assert (opened.additional, opened.closed) == (OPEN, False)
    assert (closed.additional, closed.closed) == (OPEN, True)


def test_rules_keep_all_fields() -> None:
    schema = compile_schema(
        {
            "type": "object",
            "x-kubernetes-validations": [
                {"rule": "true"},
                {
                    "rule": "self.a",
                    "message": "m",
                    "messageExpression": "'e'",
                    "reason": "FieldValueForbidden",
                    "fieldPath": ".a",
                    "optionalOldSelf": True,
                },
            ],
        }
    )

    assert schema.rules == (
        Rule("true"),
        Rule("self.a", "m", "'e'", "FieldValueForbidden", ".a", optional_old_self=True),
    )
