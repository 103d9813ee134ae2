"""Values printed as Go prints them."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver import goformat


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"),
        (True, "true"),
        ("x y", "x y"),
        (7, "7"),
        (1.0, "1"),
        (2.5, "2.5"),
        (1e21, "1e+21"),
        (1e-7, "1e-07"),
        ({"b": [1, "x", None], "a": {}}, "map[a:map[] b:[1 x <nil>]]"),
    ],
)
def test_plain_is_percent_v(value: Any, text: str) -> None:
    assert goformat.plain(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "interface {}(nil)"),
        ("x", '"x"'),
        (False, "false"),
        ({"b": 1, "a": ["x"]}, 'map[string]interface {}{"a":[]interface {}{"x"}, "b":1}'),
    ],
)
def test_literal_is_percent_sharp_v(value: Any, text: str) -> None:
    assert goformat.literal(value) == text


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "<nil>"),
        (True, "bool"),
        (1, "int64"),
        (1.5, "float64"),
        ("", "string"),
        ({}, "map[string]interface {}"),
        ([], "[]interface {}"),
    ],
)
def test_types_are_named_as_json_decodes_them(value: Any, name: str) -> None:
    assert goformat.type_name(value) == name


def test_json_is_sorted_compact_and_safe_in_html() -> None:
    value = {"b": 1.0, "a": ["<&>", {"c": 2.5}], "line": "\u2028", "ä": "ö"}
    assert goformat.json_text(value) == '{"a":["\\u003c\\u0026\\u003e",{"c":2.5}],"b":1,"line":"\\u2028","ä":"ö"}'
