"""Lists of resources in numbers."""

from __future__ import annotations

import pytest

from nodeyard.kube.quantity import MILLI, NANO, QuantityError
from nodeyard.kube.resource_list import Amounts, add, parse_amounts, raise_to, round_up, step


def test_amounts_are_exact_billionths() -> None:
    assert parse_amounts({"cpu": "1500m", "memory": "1Ki", "a/b": "1n"}) == {
        "cpu": 1500 * MILLI,
        "memory": 1024 * NANO,
        "a/b": 1,
    }
    assert parse_amounts({}) == parse_amounts(None) == {}


def test_an_invalid_quantity_is_named_with_its_resource() -> None:
    with pytest.raises(QuantityError, match="a/b: 'many': quantities must match"):
        parse_amounts({"cpu": "1", "a/b": "many"})


def test_a_negative_amount_counts_as_nothing() -> None:
    assert parse_amounts({"cpu": "-5", "memory": "-1Gi", "pods": "-0"}) == {"cpu": 0, "memory": 0, "pods": 0}


def test_adding_takes_in_new_resources() -> None:
    total: Amounts = {"cpu": 1}
    add(total, {"cpu": 2, "memory": 3})
    assert total == {"cpu": 3, "memory": 3}


def test_raising_keeps_the_larger_and_takes_in_new_resources_also_at_zero() -> None:
    total: Amounts = {"cpu": 5, "memory": 1}
    raise_to(total, {"cpu": 2, "memory": 3, "a/b": 0})
    assert total == {"cpu": 5, "memory": 3, "a/b": 0}


def test_a_part_of_a_step_counts_as_a_whole_one() -> None:
    assert round_up({"cpu": 1, "memory": NANO + 1, "pods": 2 * NANO, "a/b": 0}) == {
        "cpu": MILLI,
        "memory": 2 * NANO,
        "pods": 2 * NANO,
        "a/b": 0,
    }
    assert (step("cpu"), step("memory")) == (MILLI, NANO)
