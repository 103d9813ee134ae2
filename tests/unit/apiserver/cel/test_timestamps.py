"""Durations, also in long texts."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.cel.timestamps import parse_duration


@pytest.mark.parametrize("text", ["1" * 200_000, "1" * 200_000 + "h", "1." * 100_000], ids=["unitless", "long", "dots"])
def test_an_invalid_duration_is_refused_when_compiled(text: str) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h30m", 5400), ("1.5s", 1.5), (".5s", 0.5), ("0" * 200_000 + "7s", 7), ("1.s", 1)]
)
def test_a_valid_duration_is_parsed(text: str, seconds: float) -> None:
    found = parse_duration(text)

    assert found is not None
    assert found.nanoseconds == seconds * 10**9
