"""Durations as kubectl prints them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nodeyard.apiserver.ages import age, human_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (4 * 3600 + 60, "4h1m"),
        (8 * 3600 + 60, "8h"),
        (47 * 3600, "47h"),
        (50 * 3600, "2d2h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (731 * 86400, "2y1d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds, text):
    assert human_duration(timedelta(seconds=seconds)) == text


def test_an_age_is_counted_from_a_timestamp():
    assert age("2026-01-01T00:00:00Z", datetime(2026, 1, 1, 0, 5, tzinfo=UTC)) == "5m"


def test_no_timestamp_has_no_age():
    assert age(None, datetime(2026, 1, 1, tzinfo=UTC)) == "<unknown>"
