"""Functions of timestamps and durations: `getFullYear()`, `getHours('Europe/Berlin')`, `getSeconds()`.

The default zone is UTC. Months, days of the month and of the year count from zero, `getDate()` from one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nodeyard.apiserver.cel.declarations import Overload, member
from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.cel.timestamps import to_datetime
from nodeyard.apiserver.cel.values import Duration, Timestamp
from nodeyard.kube.goformat import NANOSECONDS

_OFFSET = re.compile(r"([+-]?\d+):(-?\d+)", re.ASCII)

_CLOCK: dict[str, Callable[[datetime], int]] = {
    "getFullYear": lambda t: t.year,
    "getMonth": lambda t: t.month - 1,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda t: t.day - 1,
    "getDate": lambda t: t.day,
    "getDayOfWeek": lambda t: t.isoweekday() % 7,
    "getHours": lambda t: t.hour,
    "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second,
}
_SPAN = {
    "getHours": 3600 * NANOSECONDS,
    "getMinutes": 60 * NANOSECONDS,
    "getSeconds": NANOSECONDS,
    "getMilliseconds": 10**6,
}


def _zone(name: str) -> tzinfo:
    if ":" in name:
        offset = _OFFSET.fullmatch(name)
        if offset is None:
            raise EvaluationError(f'strconv.Atoi: parsing "{name.split(":")[0]}": invalid syntax')
        minutes = int(offset[2])
        return timezone(timedelta(hours=int(offset[1]), minutes=-minutes if name.startswith("-") else minutes))
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


def _clock_part(read: Callable[[datetime], int]) -> Callable[..., int]:
    def part(timestamp: Timestamp, zone: str = "UTC") -> int:
        return read(to_datetime(timestamp, _zone(zone)))

    return part


def _timestamp_milliseconds(timestamp: Timestamp, zone: str = "UTC") -> int:
    _zone(zone)
    return timestamp.nanoseconds % NANOSECONDS // 10**6


def _span_part(unit: int) -> Callable[[Duration], int]:
    def part(duration: Duration) -> int:
        whole = abs(duration.nanoseconds) // unit
        return whole if duration.nanoseconds >= 0 else -whole

    return part


def _overloads() -> Iterator[Overload]:
    parts = {name: _clock_part(read) for name, read in _CLOCK.items()}
    parts["getMilliseconds"] = _timestamp_milliseconds
    for name, part in parts.items():
        yield member(name, "timestamp -> int", part)
        yield member(name, "timestamp, string -> int", part)
    for name, unit in _SPAN.items():
        yield member(name, "duration -> int", _span_part(unit))


OVERLOADS: list[Overload] = list(_overloads())
