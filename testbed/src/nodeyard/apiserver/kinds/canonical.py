"""Canonical form of times and bytes, as Go decodes and encodes them, with Go's errors."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_micro

_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_ZONE = r"Z|[+-]\d\d:\d\d"

# The elements of Go's two layouts in order, and the pattern of each.
_TO_THE_MINUTE = (
    ("2006", r"\d{4}"), ("-", "-"), ("01", r"\d\d"), ("-", "-"), ("02", r"\d\d"), ("T", "T"),
    ("15", r"\d\d"), (":", ":"), ("04", r"\d\d"), (":", ":"),
)  # fmt: skip
_SECONDS = (*_TO_THE_MINUTE, ("05", r"\d\d(?:[.,]\d+)?"), ("Z07:00", _ZONE))
_MICROSECONDS = (*_TO_THE_MINUTE, ("05", r"\d\d"), (".000000", r"[.,]\d{6}"), ("Z07:00", _ZONE))

_Layout = tuple[tuple[str, str], ...]


class UnreadableError(ValueError):
    """The text is the message of Go's decoder."""


@lru_cache(maxsize=8192)
def canonical_time(text: str) -> str:
    """`metav1.Time`: in UTC, to the second."""
    return format_rfc3339(_parse(text, _SECONDS))


@lru_cache(maxsize=8192)
def canonical_micro_time(text: str) -> str:
    """`metav1.MicroTime`: in UTC, to the microsecond; the fraction must be written out in full."""
    return format_rfc3339_micro(_parse(text, _MICROSECONDS))


def _parse(text: str, layout: _Layout) -> datetime:
    match = _pattern(layout).fullmatch(text)
    if match is None:
        raise UnreadableError(_parse_error(text, layout))
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    for value, limit, name in ((hour, 23, "hour"), (minute, 59, "minute"), (second, 59, "second")):
        if int(value) > limit:
            raise UnreadableError(f'parsing time "{text}": {name} out of range')
    micro = int((fraction or "")[:6].ljust(6, "0"))
    try:
        local = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), micro, _offset(zone))
    except ValueError:
        name = "day" if 1 <= int(month) <= 12 else "month"
        raise UnreadableError(f'parsing time "{text}": {name} out of range') from None
    try:
        return local.astimezone(UTC)
    except OverflowError:
        raise UnreadableError(f'parsing time "{text}": year out of range') from None


@lru_cache(maxsize=2)
def _pattern(layout: _Layout) -> re.Pattern[str]:
    fraction = r"[.,](\d{6})" if layout is _MICROSECONDS else r"(?:[.,](\d+))?"
    return re.compile(rf"(\d{{4}})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d){fraction}({_ZONE})")


def _offset(zone: str) -> timezone:
    if zone == "Z":
        return UTC
    span = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return timezone(-span if zone[0] == "-" else span)


def _parse_error(text: str, layout: _Layout) -> str:
    written = "".join(element for element, _ in layout)
    rest = text
    for element, pattern in layout:
        match = re.match(pattern, rest)
        if match is None:
            return f'parsing time "{text}" as "{written}": cannot parse "{rest}" as "{element}"'
        rest = rest[match.end() :]
    return f'parsing time "{text}": extra text: "{rest}"'


@lru_cache(maxsize=1024)
def canonical_base64(text: str) -> str:
    """Bytes in standard base64; line breaks and stray trailing bits are dropped, as Go's decoder does."""
    packed = text.replace("\n", "").replace("\r", "")
    if not _BASE64.fullmatch(packed):
        raise UnreadableError(f"illegal base64 data at input byte {_first_illegal(text)}")
    return base64.b64encode(base64.b64decode(packed)).decode()


def _first_illegal(text: str) -> int:
    """Return the position that Go's decoder reports: it reads four characters at a time and skips line breaks."""
    filled = 0
    for position, char in enumerate(text):
        if char in _ALPHABET:
            filled = (filled + 1) % 4
        elif char == "=":
            return _illegal_padding(text, position, filled)
        elif char not in "\r\n":
            return position
    return len(text) - filled


def _illegal_padding(text: str, position: int, filled: int) -> int:
    if filled < 2:
        return position
    following = [place for place in range(position + 1, len(text)) if text[place] not in "\r\n"]
    if filled == 2:
        if not following:
            return len(text)
        if text[following[0]] != "=":
            return following[0] - 1
        following = following[1:]
    return following[0] if following else len(text)
