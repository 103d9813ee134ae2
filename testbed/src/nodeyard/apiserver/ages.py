"""Durations formatted as kubectl does: 45s, 5m30s, 3h12m, 2d4h, 400d, 3y."""

from __future__ import annotations

from datetime import datetime, timedelta

from nodeyard.kube.timestamps import parse_rfc3339


def human_duration(elapsed: timedelta) -> str:
    """Format a duration with two units while the first is small, and one otherwise."""
    seconds = int(elapsed.total_seconds())
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def age(since: str | None, now: datetime) -> str:
    """Format the time since an RFC 3339 timestamp; `<unknown>` without one."""
    if not since:
        return "<unknown>"
    return human_duration(now - parse_rfc3339(since))


def _two(first: int, first_unit: str, second: int, second_unit: str) -> str:
    return f"{first}{first_unit}{second}{second_unit}" if second else f"{first}{first_unit}"
