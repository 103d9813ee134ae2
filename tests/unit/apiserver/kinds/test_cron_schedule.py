"""Schedules of CronJobs and their time zones."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.kinds.workloads.cron_schedule import is_time_zone, schedule_fault


@pytest.mark.parametrize(
    "schedule", ["* * * * *", "*/5 1-3 1,15 jan-FEB mon", "0 0 ? * 6", "@hourly", "@every 1h30m", "5/10 * * * *"]
)
def test_a_valid_schedule_is_parsed(schedule: str) -> None:
    assert schedule_fault(schedule) is None


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("x", "expected exactly 5 fields, found 1: [x]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
    ],
)
def test_an_invalid_schedule_is_refused_with_the_message_of_cron(schedule: str, words: str) -> None:
    assert schedule_fault(schedule) == words


def test_time_zones_are_known_by_name() -> None:
    assert is_time_zone("Europe/Berlin")
    assert not is_time_zone("Foo/Bar")
