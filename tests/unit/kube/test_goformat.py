"""Values in messages look as Go prints them."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.kube.fields import invalid, too_long
from nodeyard.kube.goformat import decimal, number, plain_json, quote


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


def test_a_decimal_has_no_exponent_and_as_few_digits_as_tell_it_apart() -> None:
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
