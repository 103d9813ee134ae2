"""The wire format of protocol buffers, with the errors of Go's generated code.

A field is a tag, which holds its number and wire type, and a value. The meaning of numbers is not known here. Groups,
which are deprecated, are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

VARINT, FIXED64, LENGTH, _START_GROUP, _END_GROUP, _FIXED32 = range(6)

_SIZES = {FIXED64: 8, _FIXED32: 4}
_UNSIGNED = (1 << 64) - 1


class WireError(ValueError):
    """Bytes that are not a message."""


def fields(data: bytes, message: str) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and value of each field: an integer for VARINT, else bytes. Errors name `message`."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, wire = tag >> 3 & 0xFFFF_FFFF, tag & 7
        if wire == _END_GROUP:
            raise WireError(f"proto: {message}: wiretype end group for non-group")
        if not 0 < number < 1 << 31:
            raise WireError(f"proto: {message}: illegal tag {signed(number, 32)} (wire type {tag})")
        value, position = _value(data, position, wire)
        yield number, wire, value


def expect(wire: int, wanted: int, field: str) -> None:
    if wire != wanted:
        raise WireError(f"proto: wrong wireType = {wire} for field {field[:1].upper()}{field[1:]}")


def packed(data: bytes) -> Iterator[int]:
    """Yield the integers of a packed repeated field."""
    position = 0
    while position < len(data):
        value, position = _varint(data, position)
        yield value


def signed(value: int, bits: int) -> int:
    """Read the lowest bits as two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _value(data: bytes, position: int, wire: int) -> tuple[Any, int]:
    if wire == VARINT:
        return _varint(data, position)
    if wire == LENGTH:
        size, position = _varint(data, position)
        if signed(size, 64) < 0:
            raise WireError("proto: negative length found during unmarshaling")
        return _slice(data, position, size)
    if wire in _SIZES:
        return _slice(data, position, _SIZES[wire])
    if wire == _START_GROUP:
        return b"", _after_group(data, position)
    raise WireError(f"proto: illegal wireType {wire}")


def _slice(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if end > len(data):
        raise WireError("unexpected EOF")
    return data[position:end], end


def _after_group(data: bytes, position: int) -> int:
    depth = 1
    while depth:
        tag, position = _varint(data, position)
        wire = tag & 7
        if wire == _START_GROUP:
            depth += 1
        elif wire == _END_GROUP:
            depth -= 1
        else:
            position = _value(data, position, wire)[1]
    return position


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Read seven bits per byte, the lowest first, at most 64 in all."""
    try:
        value = data[position]
        position += 1
        if value < 0x80:
            return value, position
        value &= 0x7F
        for shift in range(7, 64, 7):
            byte = data[position]
            position += 1
            if byte < 0x80:
                return (value | byte << shift) & _UNSIGNED, position
            value |= (byte & 0x7F) << shift
    except IndexError:
        raise WireError("unexpected EOF") from None
    raise WireError("proto: integer overflow")
