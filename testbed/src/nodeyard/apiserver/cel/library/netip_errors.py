"""Errors of invalid IP addresses as Go's `net/netip` reports them.

Python's `ipaddress` decides what is an address, and agrees with Go; this finds the error that Go reports first.
"""

from __future__ import annotations

from nodeyard.kube.goformat import quote

_HEX = set("0123456789abcdefABCDEF")


class _Fault(Exception):
    def __init__(self, message: str, at: str = "") -> None:
        super().__init__(f"{message} (at {quote(at)})" if at else message)


def explain(text: str) -> str:
    """Return the error of a text that is no address."""
    try:
        _parse(text)
    except _Fault as fault:
        return f"ParseAddr({quote(text)}): {fault}"
    return f"ParseAddr({quote(text)}): unable to parse IP"


def _parse(text: str) -> None:
    for character in text:
        if character == ".":
            return _parse_v4(text)
        if character == ":":
            return _parse_v6(text)
        if character == "%":
            raise _Fault("missing IPv6 address")
    raise _Fault("unable to parse IP")


def _parse_v4(text: str) -> None:
    value = digits = position = 0
    for index, character in enumerate(text):
        if character.isascii() and character.isdigit():
            if digits == 1 and value == 0:
                raise _Fault("IPv4 field has octet with leading zero")
            value = value * 10 + int(character)
            digits += 1
            if value > 255:
                raise _Fault("IPv4 field has value >255")
        elif character == ".":
            if index in (0, len(text) - 1) or text[index - 1] == ".":
                raise _Fault("IPv4 field must have at least one digit", text[index:])
            if position == 3:
                raise _Fault("IPv4 address too long")
            position, value, digits = position + 1, 0, 0
        else:
            raise _Fault("unexpected character", text[index:])
    if position < 3:
        raise _Fault("IPv4 address too short")


def _parse_v6(text: str) -> None:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _Fault("zone must be a non-empty string")
    has_gap, fields = False, 0
    if rest.startswith("::"):
        has_gap, rest = True, rest[2:]
        if not rest:
            return
    while fields < 8:
        rest = _skip_field(rest, fields, has_gap=has_gap)
        if "." in rest:
            return
        fields += 1
        if not rest:
            break
        rest = _skip_colon(rest)
        if rest.startswith(":"):
            if has_gap:
                raise _Fault("multiple :: in address", rest)
            has_gap, rest = True, rest[1:]
            if not rest:
                break
    if rest:
        raise _Fault("trailing garbage after address", rest)
    if fields < 8 and not has_gap:
        raise _Fault("address string too short")
    if fields == 8 and has_gap:
        raise _Fault("the :: must expand to at least one field of zeros")


def _skip_field(rest: str, fields: int, *, has_gap: bool) -> str:
    length = next((index for index, character in enumerate(rest) if character not in _HEX), len(rest))
    if length > 4:
        raise _Fault("each group must have 4 or less digits", rest)
    if length == 0:
        raise _Fault("each colon-separated field must have at least one digit", rest)
    if rest[length : length + 1] != ".":
        return rest[length:]
    if not has_gap and fields != 6:
        raise _Fault("embedded IPv4 address must replace the final 2 fields of the address", rest)
    if fields > 6:
        raise _Fault("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    _parse_v4(rest)
    return rest


def _skip_colon(rest: str) -> str:
    if rest[0] != ":":
        raise _Fault("unexpected character, want colon", rest)
    if len(rest) == 1:
        raise _Fault("colon must be followed by more characters", rest)
    return rest[1:]
