"""Type conversions: `int('3')`, `string(1.5)`, `timestamp('...')`, `type(x)`.

A failing conversion of a constant is a compile error, see `CONVERSIONS`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from nodeyard.apiserver.cel.comparison import checked_int
from nodeyard.apiserver.cel.declarations import Overload, function, operators
from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.cel.timestamps import (
    format_duration,
    format_timestamp,
    from_seconds,
    parse_duration,
    parse_timestamp,
)
from nodeyard.apiserver.cel.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, TypeValue, UInt, type_name
from nodeyard.kube.goformat import NANOSECONDS, number

_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_UNSIGNED = re.compile(r"\d+", re.ASCII)
_FLOAT = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE)
_TRUE = {"1", "t", "T", "TRUE", "true", "True"}
_FALSE = {"0", "f", "F", "FALSE", "false", "False"}


def _impossible(value: Any, wanted: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


def string_to_int(text: str) -> int:
    if _INTEGER.fullmatch(text) and INT_MIN <= int(text) <= INT_MAX:
        return int(text)
    raise _impossible(text, "int")


def double_to_int(value: float) -> int:
    if math.isnan(value) or not float(INT_MIN) < value < float(INT_MAX):
        raise EvaluationError("integer overflow")
    return int(value)


def string_to_uint(text: str) -> UInt:
    if _UNSIGNED.fullmatch(text) and int(text) <= UINT_MAX:
        return UInt(text)
    raise _impossible(text, "uint")


def number_to_uint(value: float) -> UInt:
    if math.isnan(value) or math.isinf(value) or not 0 <= value <= UINT_MAX:
        raise EvaluationError("unsigned integer overflow")
    return UInt(int(value))


def string_to_double(text: str) -> float:
    if _FLOAT.fullmatch(text):
        value = float(text)
        if math.isfinite(value) or not text[-1:].isdigit():
            return value
    raise _impossible(text, "double")


def string_to_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise _impossible(text, "bool")


def string_to_duration(text: str) -> Duration:
    parsed = parse_duration(text)
    if parsed is None:
        raise _impossible(text, "google.protobuf.Duration")
    return parsed


def int_to_duration(value: int) -> Duration:
    raise _impossible(value, "google.protobuf.Duration")


def string_to_timestamp(text: str) -> Timestamp:
    parsed = parse_timestamp(text)
    if parsed is None:
        raise _impossible(text, "google.protobuf.Timestamp")
    return parsed


def int_to_timestamp(value: int) -> Timestamp:
    moment = from_seconds(value)
    if moment is None:
        raise EvaluationError("timestamp overflow")
    return moment


def bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def double_to_string(value: float) -> str:
    if math.isfinite(value):
        return "-0" if value == 0 and math.copysign(1, value) < 0 else number(value)
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")


def to_string(value: Any) -> str:
    """Convert a value of any type that `string()` accepts."""
    if value.__class__ is bool:
        return "true" if value else "false"
    if value is None:
        return "null"
    convert = _TEXTS.get(value.__class__)
    if convert is None:
        raise _impossible(value, "string")
    return convert(value)


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: str,
    int: str,
    UInt: lambda value: str(int(value)),
    float: double_to_string,
    bytes: bytes_to_string,
    Duration: format_duration,
    Timestamp: format_timestamp,
    TypeValue: lambda value: value.name,
}


def _same(value: Any) -> Any:
    return value


OVERLOADS: list[Overload] = [
    *operators("type", "A -> type(A)", lambda value: TypeValue(type_name(value))),
    *operators("dyn", "A -> dyn", _same),
    function("bool", "bool -> bool", _same),
    function("bool", "string -> bool", string_to_bool),
    function("bytes", "bytes -> bytes", _same),
    function("bytes", "string -> bytes", str.encode),
    function("double", "double -> double", _same),
    function("double", "int -> double", float),
    function("double", "string -> double", string_to_double),
    function("double", "uint -> double", float),
    function("duration", "duration -> duration", _same),
    function("duration", "int -> duration", int_to_duration),
    function("duration", "string -> duration", string_to_duration),
    function("int", "int -> int", _same),
    function("int", "double -> int", double_to_int),
    function("int", "duration -> int", lambda value: value.nanoseconds),
    function("int", "string -> int", string_to_int),
    function("int", "timestamp -> int", lambda value: value.nanoseconds // NANOSECONDS),
    function("int", "uint -> int", lambda value: checked_int(int(value))),
    *(
        function("string", f"{name} -> string", to_string)
        for name in ("string", "bool", "bytes", "double", "duration", "int", "timestamp", "uint")
    ),
    function("timestamp", "timestamp -> timestamp", _same),
    function("timestamp", "int -> timestamp", int_to_timestamp),
    function("timestamp", "string -> timestamp", string_to_timestamp),
    function("uint", "uint -> uint", _same),
    function("uint", "double -> uint", number_to_uint),
    function("uint", "int -> uint", number_to_uint),
    function("uint", "string -> uint", string_to_uint),
]

CONVERSIONS = {overload.name for overload in OVERLOADS}
