"""The one JSON equality, floats, and whole numbers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nodeyard.kube.json import json_equal, read_float, with_whole_numbers


class Spec(msgspec.Struct):
    config: Any


@pytest.mark.parametrize(("left", "right"), [(1, True), (0, False), (1, 1.0), (True, 1.0)])
@pytest.mark.parametrize(
    "within",
    [
        pytest.param(lambda value: value, id="alone"),
        pytest.param(lambda value: {"a": [{"b": value}]}, id="deep"),
        pytest.param(lambda value: ({"a": value}, "x"), id="tuple"),
        pytest.param(lambda value: Spec({"a": value}), id="struct"),
    ],
)
def test_numbers_of_another_type_differ(left: Any, right: Any, within: Any) -> None:
    assert within(left) == within(right)
    assert not json_equal(within(left), within(right))
    assert json_equal(within(left), within(left))


@pytest.mark.parametrize("value", [1, 1.5, True, None, "x", [], {}, [1, {"a": True}], Spec({"b": 1, "a": True})])
def test_equal_values_are_equal(value: Any) -> None:
    assert json_equal(value, msgspec.convert(msgspec.to_builtins(value), type(value) if value is not None else None))


def test_the_order_of_members_does_not_count() -> None:
    assert json_equal({"a": 1, "b": [True]}, {"b": [True], "a": 1})
    assert json_equal(Spec({"a": 1, "b": 2}), Spec({"b": 2, "a": 1}))


def test_values_of_numbers_may_be_all_that_counts() -> None:
    assert json_equal({"a": [1]}, {"a": [1.0]}, by_value=True)
    assert not json_equal({"a": [1]}, {"a": [True]}, by_value=True)


def test_whole_floats_become_integers() -> None:
    whole = with_whole_numbers({"a": [3.0, 0.5, {"b": -0.0}], "c": 1e30, "d": True})

    assert json_equal(whole, {"a": [3, 0.5, {"b": 0}], "c": 1e30, "d": True})


def test_a_value_without_whole_floats_is_returned_as_it_is() -> None:
    value = {"a": [1, 0.5, {"b": "x"}]}

    assert with_whole_numbers(value) is value


def test_a_float_beyond_the_range_of_a_double_is_refused() -> None:
    decode = msgspec.json.Decoder(float_hook=read_float).decode

    assert decode(b"[1.5, -0.0, 1e308, 5e-324]") == [1.5, -0.0, 1e308, 5e-324]
    for text in (b"[1e400]", b"[-1e400]"):
        with pytest.raises(msgspec.ValidationError, match="number out of range"):
            decode(text)
