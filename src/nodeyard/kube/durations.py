"""Durations as Go's time.ParseDuration reads them: `1h30m`, `1.5s`, `-250ms`."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

NANOSECONDS: Final = 10**9
LARGEST: Final = (1 << 63) - 1
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "\u00b5s": 10**3,
    "\u03bcs": 10**3,
    "ms": 10**6,
    "s": NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
}
_PART = re.compile(r"(\d++\.?+\d*+|\.\d++)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", re.ASCII)
_MAX_DIGITS = 19  # of 64 bits


def parse_nanoseconds(text: str) -> int | None:
    """Return the duration in nanoseconds, or None if Go would reject the text or it does not fit 64 bits."""
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return 0
    total, position = 0, 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None or len(part[1].partition(".")[0].lstrip("0")) > _MAX_DIGITS:
            return None
        total += int(Decimal(part[1]) * _UNITS[part[2]])
        position = part.end()
    nanoseconds = -total if sign == "-" else total
    return nanoseconds if rest and -LARGEST - 1 <= nanoseconds <= LARGEST else None
