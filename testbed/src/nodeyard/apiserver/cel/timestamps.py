"""Text formats of timestamps and durations: RFC 3339, and Go's durations (`1h30m`)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from nodeyard.apiserver.cel.values import Duration, Timestamp
from nodeyard.kube.goformat import NANOSECONDS, decimal, parse_nanoseconds

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = -62_135_596_800 * NANOSECONDS
LATEST = 253_402_300_800 * NANOSECONDS - 1

_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:(Z)|([+-])(\d\d):(\d\d))", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

# Durations in CRD fields may also have words: `2 days`. The last spelling of each unit is also a prefix.
_WORDS = {
    "nanosecond": ("ns", "nano"),
    "microsecond": ("us", "micro"),
    "millisecond": ("ms", "milli"),
    "second": ("s", "sec"),
    "minute": ("m", "min"),
    "hour": ("h", "hr", "hour"),
    "day": ("d", "day"),
    "week": ("w", "wk", "week"),
}
_WORD_NANOSECONDS = {
    "nanosecond": 1,
    "microsecond": 10**3,
    "millisecond": 10**6,
    "second": NANOSECONDS,
    "minute": 60 * NANOSECONDS,
    "hour": 3600 * NANOSECONDS,
    "day": 24 * 3600 * NANOSECONDS,
    "week": 7 * 24 * 3600 * NANOSECONDS,
}
_WORDED = re.compile(r"(\d+)\s*([A-Za-z\u00b5]+)", re.ASCII)


def parse_duration(text: str) -> Duration | None:
    nanoseconds = parse_nanoseconds(text)
    return None if nanoseconds is None else Duration(nanoseconds)


def parse_duration_field(text: str) -> Duration | None:
    """Parse a string with `format: duration`."""
    parsed = parse_duration(text)
    if parsed is not None:
        return parsed
    found = [(int(number), _word_nanoseconds(unit.lower())) for number, unit in _WORDED.findall(text)]
    known = [number * nanoseconds for number, nanoseconds in found if nanoseconds]
    return Duration(sum(known)) if known else None


def _word_nanoseconds(unit: str) -> int:
    for word, spellings in _WORDS.items():
        if unit in spellings or unit.startswith(spellings[-1]):
            return _WORD_NANOSECONDS[word]
    return 0


def parse_timestamp(text: str) -> Timestamp | None:
    found = _RFC3339.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    zone = 0
    if found[8] is None:
        hours, minutes = int(found[10]), int(found[11])
        if hours > 24 or minutes > 59:
            return None
        zone = (hours * 60 + minutes) * (1 if found[9] == "+" else -1)
    fraction = int((found[7] or "").ljust(9, "0")[:9])
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - zone * 60
    return Timestamp(seconds * NANOSECONDS + fraction, zone)


def parse_date(text: str) -> Timestamp | None:
    return parse_timestamp(f"{text}T00:00:00Z") if _DATE.fullmatch(text) else None


def from_seconds(seconds: int) -> Timestamp | None:
    nanoseconds = seconds * NANOSECONDS
    return Timestamp(nanoseconds) if EARLIEST <= nanoseconds <= LATEST else None


def format_timestamp(timestamp: Timestamp) -> str:
    local = to_datetime(timestamp, timezone(timedelta(minutes=timestamp.zone_minutes)))
    text = f"{local.year:04}-{local.month:02}-{local.day:02}T{local:%H:%M:%S}"
    fraction = timestamp.nanoseconds % NANOSECONDS
    if fraction:
        text += f".{fraction:09}".rstrip("0")
    if not timestamp.zone_minutes:
        return text + "Z"
    hours, minutes = divmod(abs(timestamp.zone_minutes), 60)
    return f"{text}{'-' if timestamp.zone_minutes < 0 else '+'}{hours:02}:{minutes:02}"


def to_datetime(timestamp: Timestamp, zone: tzinfo) -> datetime:
    """Return the time in the zone, in whole seconds."""
    utc = _EPOCH + timedelta(seconds=timestamp.nanoseconds // NANOSECONDS)
    return utc.astimezone(zone)


def format_duration(duration: Duration) -> str:
    """Format a duration in seconds with the precision of a double: `5400s`."""
    return decimal(duration.nanoseconds / NANOSECONDS) + "s"
