"""Durations in the words of kubectl: 45s, 5m30s, 3h12m, 2d4h, 400d, 3y."""

from __future__ import annotations

from datetime import datetime, timedelta


def human_duration(elapsed: timedelta) -> str:
    """Two units while the first is small, one when nobody would read the second."""
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
    """How long ago an RFC 3339 moment was; `<unknown>` without one."""
    if not since:
        return "<unknown>"
    return human_duration(now - datetime.fromisoformat(since.replace("Z", "+00:00")))


def _two(first: int, first_unit: str, second: int, second_unit: str) -> str:
    return f"{first}{first_unit}{second}{second_unit}" if second else f"{first}{first_unit}"
