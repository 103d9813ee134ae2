"""Compiles the checks of single values: type, string, format, number, enum.

Each function returns a check, or None if there is nothing to check. A check takes a value of the type it was compiled
for and returns its faults, or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import NoneType
from typing import Any

from nodeyard.kube.fields import FieldErrorType, too_long
from nodeyard.kube.goformat import decimal, number, plain_json, quote
from nodeyard.kube.json import Json, json_equal
from nodeyard.schema.faults import Fault, body_fault, plain_fault, range_fault
from nodeyard.schema.formats import is_checked, string_check
from nodeyard.schema.model import Schema
from nodeyard.schema.patterns import compile_pattern

Check = Callable[[Any], list[Fault] | None]

JSON_TYPES: tuple[type, ...] = (NoneType, bool, int, float, str, list, dict)

# JSON type and format that the server reports for a decoded value.
_TYPE_NAMES: dict[type, tuple[str, str]] = {
    bool: ("boolean", ""),
    int: ("integer", "int64"),
    float: ("number", "float64"),
    str: ("string", ""),
    list: ("array", ""),
    dict: ("object", ""),
}
_MAX_SAFE = 2.0**53 - 1


def types_of(schema: Schema) -> tuple[str, ...]:
    if schema.int_or_string:
        return ("integer", "string")
    return (schema.type,) if schema.type else ()


def format_of(schema: Schema) -> str:
    """Return the format if it is checked, else an empty text."""
    types = types_of(schema)
    return schema.format if is_checked(types[0] if len(types) == 1 else "", schema.format) else ""


def is_whole(value: float) -> bool:
    """Return whether the server accepts a float as an integer: exactly, or to nine digits."""
    if not -_MAX_SAFE <= value <= _MAX_SAFE:
        return False
    whole = math.trunc(value)
    if value == whole:
        return True
    return whole > 0 and (value - whole) / (value + whole) < 1e-9


# type


def type_check(schema: Schema, json_type: type) -> Check | None:
    types, format_ = types_of(schema), format_of(schema)
    if json_type is NoneType:
        return _type_mismatch(",".join(types), "null") if types and not schema.nullable else None
    if not types and not format_:
        return None
    found, found_format = _TYPE_NAMES[json_type]
    if found in types or (json_type is int and "number" in types):
        return None
    is_numeric = "number" in types or "integer" in types
    if json_type in (str, list):
        return None if format_ and not is_numeric else _type_mismatch(",".join(types), found)
    refuse = _type_mismatch(format_, found_format) if format_ else _type_mismatch(",".join(types), found)
    if json_type is float and "integer" in types:
        return lambda value: None if is_whole(value) else refuse(value)
    return refuse


def _type_mismatch(wanted: str, found: str) -> Check:
    return lambda value: [body_fault(FieldErrorType.TYPE_INVALID, found, f"must be of type {wanted}: {quote(found)}")]


# strings


def string_checks(schema: Schema) -> list[Check]:
    checks = [_length_and_pattern_check(schema), _format_check(schema)]
    return [check for check in checks if check is not None]


def _length_and_pattern_check(schema: Schema) -> Check | None:
    """Check length and pattern. Only the first fault is reported: too long, too short, no match."""
    most, least, source = schema.max_length, schema.min_length, schema.pattern
    if most is None and least is None and not source:
        return None
    longest = math.inf if most is None else most
    shortest = least or 0
    matches = compile_pattern(source).matches if source else None

    def check(value: str) -> list[Fault] | None:
        length = len(value)
        if length > longest:
            return [plain_fault(FieldErrorType.TOO_LONG, None, too_long("", int(longest)).detail)]
        if length < shortest:
            return [body_fault(FieldErrorType.INVALID, value, f"should be at least {shortest} chars long")]
        if matches is not None and not matches(value):
            return [body_fault(FieldErrorType.INVALID, value, f"should match '{source}'")]
        return None

    return check


def _format_check(schema: Schema) -> Check | None:
    name = format_of(schema)
    is_valid = string_check(name) if name else None
    if is_valid is None:
        return None

    def check(value: str) -> list[Fault] | None:
        if is_valid(value):
            return None
        return [body_fault(FieldErrorType.TYPE_INVALID, value, f"must be of type {name}: {quote(value)}")]

    return check


# numbers


def number_check(schema: Schema, json_type: type) -> Check | None:
    """Check the range of type and format, then multipleOf, minimum and maximum."""
    bounds = [
        _range_check(schema, json_type),
        _limit_check(schema, json_type, schema.multiple_of, "MultipleOf", _multiple_check),
        _limit_check(schema, json_type, schema.minimum, "Minimum boundary", _minimum_check),
        _limit_check(schema, json_type, schema.maximum, "Maximum boundary", _maximum_check),
    ]
    checks = [check for check in bounds if check is not None]
    if not checks:
        return None
    if len(checks) == 1:
        return checks[0]

    def check_all(value: Json) -> list[Fault] | None:
        return [fault for check in checks for fault in check(value) or ()] or None

    return check_all


def _is_out_of_range(schema: Schema, value: float) -> bool:
    """Return whether a number is outside the range of type and format; `double` has no range."""
    types = types_of(schema)
    if types == ("integer",):
        written = decimal(value)
        bits = 31 if schema.format == "int32" else 63
        return "." in written or not -(2**bits) <= int(written) < 2**bits
    return types == ("number",) and schema.format == "float" and abs(value) > 3.4028235677973366e38


def _range_message(schema: Schema, what: str) -> str:
    name = f"with format {format_of(schema)}" if format_of(schema) else "(default format)"
    return f"{what} value must be of type {schema.type} {name}"


def _range_check(schema: Schema, json_type: type) -> Check | None:
    types, format_ = types_of(schema), format_of(schema)
    is_narrow = (types == ("integer",) and (json_type is float or format_ == "int32")) or (
        types == ("number",) and format_ == "float"
    )
    if not is_narrow:
        return None
    return lambda value: [range_fault(_range_message(schema, "Checked"))] if _is_out_of_range(schema, value) else None


def _limit_check(
    schema: Schema, json_type: type, limit: float | None, what: str, make: Callable[[Schema, float], Check]
) -> Check | None:
    """Check a limit. A limit outside the type's range is a fault of every value, which is then compared as a float."""
    if limit is None:
        return None
    if _is_out_of_range(schema, limit):
        message, judge = _range_message(schema, what), make(schema, float(limit))
        return lambda value: [range_fault(message), *(judge(float(value)) or ())]
    return make(schema, math.trunc(limit) if json_type is int else float(limit))


def _maximum_check(schema: Schema, limit: float) -> Check:
    is_strict, shown = schema.exclusive_maximum, number(limit)
    message = f"should be less than {shown}" if is_strict else f"should be less than or equal to {shown}"

    def check(value: float) -> list[Fault] | None:
        if value < limit or (value == limit and not is_strict):
            return None
        return [body_fault(FieldErrorType.INVALID, value, message)]

    return check


def _minimum_check(schema: Schema, limit: float) -> Check:
    is_strict, shown = schema.exclusive_minimum, number(limit)
    message = f"should be greater than {shown}" if is_strict else f"should be greater than or equal to {shown}"

    def check(value: float) -> list[Fault] | None:
        if value > limit or (value == limit and not is_strict):
            return None
        return [body_fault(FieldErrorType.INVALID, value, message)]

    return check


def _multiple_check(schema: Schema, factor: float) -> Check:
    if factor <= 0:
        return lambda value: [
            Fault(
                FieldErrorType.INVALID,
                factor,
                lambda path: f"factor MultipleOf declared for {path} must be positive: {number(factor)}",
            )
        ]

    message = f"should be a multiple of {number(factor)}"

    def check(value: float) -> list[Fault] | None:
        if isinstance(value, int):
            fits = value % factor == 0
        else:
            fits = is_whole(1 / factor * value if factor < 1 else value / factor)
        return None if fits else [body_fault(FieldErrorType.INVALID, value, message)]

    return check


# enumerations


def enum_check(schema: Schema) -> Check | None:
    if not schema.enum:
        return None
    choices = schema.enum
    quick = frozenset(choice for choice in choices if isinstance(choice, str))
    shown = ", ".join(quote(choice if isinstance(choice, str) else plain_json(choice)) for choice in choices)

    def check(value: Json) -> list[Fault] | None:
        if value.__class__ is str and value in quick:
            return None
        if any(_converts_to(value, choice) for choice in choices):
            return None
        return [plain_fault(FieldErrorType.NOT_SUPPORTED, value, f"supported values: {shown}")]

    return check


def _converts_to(value: Json, choice: Json) -> bool:
    """Return whether a value equals an enum choice after Go's conversion to the type of the choice.

    A float converts to an integer by truncation, an integer to the string of the character with that code.
    """
    if value is None or choice is None:
        return False
    if isinstance(value, bool) or isinstance(choice, bool):
        return value is choice
    if isinstance(value, (int, float)):
        if isinstance(choice, int):
            return math.isfinite(value) and math.trunc(value) == choice
        if isinstance(choice, str):
            return isinstance(value, int) and 0 <= value <= 0x10FFFF and chr(value) == choice
        return isinstance(choice, float) and float(value) == choice
    return json_equal(value, choice)
