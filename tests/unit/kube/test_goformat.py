"""Values in messages look as Go prints them."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.kube.fields import invalid, too_long
from nodeyard.kube.goformat import decimal, literal, number, plain, plain_json, quote, type_name


@pytest.mark.parametrize(
    ("value", "printed", "in_json"),
    [
        (0.0, "0", "0"),
        (1.5, "1.5", "1.5"),
        (999999.0, "999999", "999999"),
        (1e6, "1e+06", "1000000"),
        (1234567.0, "1.234567e+06", "1234567"),
        (12345678.9, "1.23456789e+07", "12345678.9"),
        (1e20, "1e+20", "100000000000000000000"),
        (1.5e21, "1.5e+21", "1.5e+21"),
        (0.0001, "0.0001", "0.0001"),
        (0.00001, "1e-05", "0.00001"),
        (1e-7, "1e-07", "1e-7"),
        (-3e9, "-3e+09", "-3000000000"),
    ],
)
def test_a_float_has_two_forms(value: float, printed: str, in_json: str) -> None:
    assert (number(value), plain_json(value)) == (printed, in_json)


def test_an_integer_is_never_shortened() -> None:
    assert number(12345678901234567890) == "12345678901234567890"


def test_a_decimal_has_no_exponent_and_the_fewest_distinct_digits() -> None:
    assert [decimal(value) for value in (-9223372036854775808.0, 0.00001, 3)] == [
        "-9223372036854776000",
        "0.00001",
        "3",
    ]


def test_a_string_is_quoted_with_gos_escapes() -> None:
    assert quote('a"\x00\x7fé\u200b😀\n\\') == '"a\\"\\x00\\x7fé\\u200b😀\\n\\\\"'


def test_json_is_compact_sorted_and_safe_in_html() -> None:
    assert plain_json({"b": "<&>", "a": [1.0, None, True]}) == '{"a":[1,null,true],"b":"\\u003c\\u0026\\u003e"}'


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a\n", '"a\\n"'), (3e9, "3e+09"), (True, "true"), (None, "null"), ({"a": 1.0}, '{"a":1}'), ([], "[]")],
)
def test_an_error_shows_the_bad_value(value: Any, shown: str) -> None:
    assert str(invalid("spec.x", value, "is bad")) == f"spec.x: Invalid value: {shown}: is bad"


def test_a_limit_of_one_is_a_byte() -> None:
    assert [too_long("x", limit).detail for limit in (1, 2)] == [
        "may not be more than 1 byte",
        "may not be more than 2 bytes",
    ]


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
    assert plain(value) == text


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
    assert literal(value) == text


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
    assert type_name(value) == name


def test_json_is_sorted_compact_and_safe_in_html() -> None:
    value = {"b": 1.0, "a": ["<&>", {"c": 2.5}], "line": "\u2028", "ä": "ö"}
    assert plain_json(value) == '{"a":["\\u003c\\u0026\\u003e",{"c":2.5}],"b":1,"line":"\\u2028","ä":"ö"}'
