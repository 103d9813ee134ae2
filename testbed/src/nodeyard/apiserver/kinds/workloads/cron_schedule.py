"""Validation of cron schedules, in the words of the parser that kube-apiserver uses."""

from __future__ import annotations

import re
import zoneinfo
from functools import cache

_MONTHS = dict(
    zip(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], range(1, 13), strict=True)
)
_DAYS = dict(zip(["sun", "mon", "tue", "wed", "thu", "fri", "sat"], range(7), strict=True))
_NO_NAMES: dict[str, int] = {}
_FIELDS = ((0, 59, _NO_NAMES), (0, 23, _NO_NAMES), (1, 31, _NO_NAMES), (1, 12, _MONTHS), (0, 6, _DAYS))
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_DURATION = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))*|0")


class _FaultError(ValueError):
    pass


def schedule_fault(schedule: str) -> str | None:
    """Return the fault of a schedule, or None."""
    try:
        _check(schedule)
    except _FaultError as fault:
        return str(fault)
    return None


def _check(schedule: str) -> None:
    if schedule.startswith("@"):
        _check_descriptor(schedule)
        return
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        raise _FaultError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            _check_range(part, low, high, names)


def _check_descriptor(schedule: str) -> None:
    if schedule.startswith("@every "):
        duration = schedule.removeprefix("@every ")
        if not _DURATION.fullmatch(duration):
            raise _FaultError(f'failed to parse duration {schedule}: time: invalid duration "{duration}"')
    elif schedule not in _DESCRIPTORS:
        raise _FaultError(f"unrecognized descriptor: {schedule}")


def _check_range(part: str, low: int, high: int, names: dict[str, int]) -> None:
    spans = part.split("/")
    bounds = spans[0].split("-")
    if bounds[0] in ("*", "?"):
        start, end = low, high
    else:
        start = _number(bounds[0], names)
        if len(bounds) > 2:
            raise _FaultError(f"too many hyphens: {part}")
        end = _number(bounds[1], names) if len(bounds) == 2 else start
    if len(spans) > 2:
        raise _FaultError(f"too many slashes: {part}")
    step = _number(spans[1], _NO_NAMES) if len(spans) == 2 else 1
    if len(spans) == 2 and len(bounds) == 1:
        end = high
    if start < low:
        raise _FaultError(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise _FaultError(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise _FaultError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise _FaultError(f"step of range should be a positive number: {part}")


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[-+]?\d+", text):
        raise _FaultError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise _FaultError(f"negative number ({number}) not allowed: {text}")
    return number


@cache
def is_time_zone(name: str) -> bool:
    """True if a time zone exists. Every name is accepted if the machine has no time zone database."""
    known = zoneinfo.available_timezones()
    return not known or name in known
