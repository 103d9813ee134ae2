"""Paths of rules and of selectable fields."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.cel.field_paths import FieldPathError, resolve
from nodeyard.schema.compile import compile_schema

SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "a.b": {"type": "boolean"},
                    "it's": {"type": "number"},
                    "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "list": {"type": "array", "items": {"type": "string"}},
                },
            }
        },
    }
)


@pytest.mark.parametrize(
    ("path", "written", "type_"),
    [
        (".spec.name", "spec.name", "string"),
        (".spec['name']", "spec.name", "string"),
        (".spec['a.b']", "spec.a.b", "boolean"),
        (r".spec['it\'s']", "spec.it's", "number"),
        (".spec.labels.x", "spec.labels[x]", "integer"),
        (".spec.labels['x.y']", "spec.labels[x.y]", "integer"),
        ("", "", "object"),
    ],
)
def test_a_path_leads_to_a_schema(path: str, written: str, type_: str) -> None:
    found = resolve(path, SCHEMA)

    assert (found.path, found.schema.type) == (written, type_)


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("spec", "expected [ or . but got: spec"),
        (".spec.other", "does not refer to a valid field"),
        (".spec.name.more", "does not refer to a valid field"),
        (".spec.list[0]", "expected single quoted string but got 0"),
        (".spec[", "unexpected end of JSON path"),
        (".spec['name'", "unexpected end of JSON path"),
        (".spec['name'x]", "expected ] but got x"),
        (r".spec['\q']", r"invalid string literal: invalid escape char \q"),
        (".", "unexpected end of JSON path"),
    ],
)
def test_an_unknown_path_explains_why(path: str, problem: str) -> None:
    with pytest.raises(FieldPathError) as refused:
        resolve(path, SCHEMA)

    assert str(refused.value) == problem


def test_brackets_can_be_forbidden() -> None:
    with pytest.raises(FieldPathError, match="array notation is not allowed"):
        resolve(".spec['name']", SCHEMA, allows_brackets=False)
