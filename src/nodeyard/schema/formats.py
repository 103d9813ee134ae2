"""Checks the formats of strings and numbers that the server knows; others are ignored.

Dashes in format names are ignored (`date-time` equals `datetime`). Each check accepts what the server's accepts, its
oddities included: a hostname may contain symbols, a duration may be `3 days or so`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from functools import lru_cache

from nodeyard.schema import addresses
from nodeyard.schema.patterns import Pattern, compile_pattern

StringCheck = Callable[[str], bool]

_NUMBER_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}

_NAME = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"

_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_GO_DURATION = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")
_GO_DURATION_PART = re.compile(r"([0-9.]+)([a-zµμ]+)")
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART = re.compile(r"(?<![0-9])([0-9]++)[\t\n\f\r ]*([A-Za-zµ]+)")
_DURATION_UNITS = ("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk")
_DURATION_PREFIXES = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")

_HOSTNAME = (
    r"^([a-zA-Z0-9{s}{l}]((-?[a-zA-Z0-9{s}{l}]{{0,62}})?)"
    r"|([a-zA-Z0-9{s}{l}](([a-zA-Z0-9-{s}{l}]{{0,61}}[a-zA-Z0-9{s}{l}])?)(\.)){{1,}}([a-zA-Z{l}]){{2,63}})$"
)
_ASCII_HOSTNAME = compile_pattern(_HOSTNAME.format(s=r"$+<=>\^`|~", l=""))

_CREDIT_CARD = re.compile(
    r"4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)
_COLOR_CHANNEL = r"[\t\n\f\r ]*(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*"


def _matches(pattern: str, flags: int = 0) -> StringCheck:
    full = re.compile(pattern, flags).fullmatch
    return lambda text: full(text) is not None


def _uuid(third: str, fourth: str) -> StringCheck:
    return _matches(rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{third}-?{fourth}-?[0-9a-f]{{12}}", re.IGNORECASE | re.ASCII)


def _is_date(text: str) -> bool:
    found = _DATE.fullmatch(text)
    if not found:
        return False
    year, month, day = (int(part) for part in found.groups())
    # Python has no year 0, which is a leap year like 2000.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 2000, month)[1]


def _is_date_time(text: str) -> bool:
    day, *times = text.lower().split("t")
    found = _TIME.fullmatch(times[0]) if times else None
    if not found or not _is_date(day):
        return False
    return found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _is_duration(text: str) -> bool:
    if _GO_DURATION.fullmatch(text):
        total = sum(float(count) * _NANOSECONDS[unit] for count, unit in _GO_DURATION_PART.findall(text))
        if total < 2**63:
            return True
    known = False
    for count, unit in _DURATION_PART.findall(text):
        digits = count.lstrip("0")
        # Python refuses to parse integers of several thousand digits.
        if len(digits) > 19 or int(digits or "0") >= 2**63:
            return False
        word = unit.lower()
        known = known or word in _DURATION_UNITS or word.startswith(_DURATION_PREFIXES)
    return known


@lru_cache(maxsize=1)
def _hostname() -> Pattern:
    # The Unicode pattern is slow to compile and not needed for ASCII names.
    return compile_pattern(_HOSTNAME.format(s=r"\p{S}", l=r"\p{L}"))


def _is_hostname(text: str) -> bool:
    pattern = _ASCII_HOSTNAME if text.isascii() else _hostname()
    if not pattern.matches(text):
        return False
    raw = text.encode()
    return len(raw) <= 255 and all(len(label) <= 63 for label in raw.split(b"."))


def _is_credit_card(text: str) -> bool:
    digits = re.sub("[^0-9]+", "", text)
    if not _CREDIT_CARD.fullmatch(digits):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(doubled)) % 10 == 0


def _is_isbn10(text: str) -> bool:
    text = re.sub(r"[\t\n\f\r -]+", "", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", text):
        return False
    return sum(place * (10 if char == "X" else int(char)) for place, char in enumerate(text, start=1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    text = re.sub(r"[\t\n\f\r -]+", "", text)
    if not re.fullmatch("[0-9]{13}", text):
        return False
    total = sum((3 if place % 2 else 1) * int(char) for place, char in enumerate(text[:12]))
    return int(text[12]) == (10 - total % 10) % 10


def _is_short_name(text: str) -> bool:
    return len(text) <= 63 and re.fullmatch(_NAME, text) is not None


def _is_long_name(text: str) -> bool:
    return len(text) <= 253 and re.fullmatch(rf"{_NAME}(?:\.{_NAME})*", text) is not None


_STRING_CHECKS: dict[str, StringCheck] = {
    "bsonobjectid": _matches("[0-9A-Fa-f]{24}"),
    "byte": _matches("(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "cidr": addresses.is_cidr,
    "creditcard": _is_credit_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": addresses.is_email,
    "hexcolor": _matches("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": addresses.is_ipv4,
    "ipv6": addresses.is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": _is_long_name,
    "k8sshortname": _is_short_name,
    "mac": addresses.is_mac,
    "password": lambda _text: True,
    "rgbcolor": _matches(rf"rgb\({_COLOR_CHANNEL},{_COLOR_CHANNEL},{_COLOR_CHANNEL}\)"),
    "ssn": _matches("(?=.{11}$)[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}"),
    "uri": addresses.is_request_uri,
    "uuid": _uuid("[0-9a-f]{4}", "[0-9a-f]{4}"),
    "uuid3": _uuid("3[0-9a-f]{3}", "[0-9a-f]{4}"),
    "uuid4": _uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
}


def string_check(name: str) -> StringCheck | None:
    """Return the check of a string format; None if the format is unknown."""
    return _STRING_CHECKS.get(name.replace("-", ""))


def is_checked(type_: str, name: str) -> bool:
    """Return whether a format is checked on a type; an empty type means none or several."""
    if type_ in ("", "string"):
        return string_check(name) is not None
    return name in _NUMBER_FORMATS.get(type_, ())
