"""JSON values: their types, and the equality that the whole project uses.

Objects are plain dicts and persistent values: a dict or list that was passed on is never changed in place. A function
that changes something returns a new object that shares the untouched parts. Copies are cheap, and a diff skips
identical parts.
"""

import math
from typing import Any, TypeAlias

import msgspec

Json: TypeAlias = Any
Object: TypeAlias = dict[str, Any]

_encode = msgspec.json.Encoder().encode
_NUMBERS = (bool, int, float)
_INT64_END = 2.0**63
_NEVER_WHOLE = frozenset((str, int, bool, type(None)))


def json_equal(left: Json, right: Json, *, by_value: bool = False) -> bool:
    """Compare two values as JSON: 1, 1.0 and true are three values, although they are equal in Python.

    With `by_value` 1 and 1.0 are equal; 1 and true never are. Structs are compared by their encoding.
    """
    if left is right:
        return True
    if left != right:
        return False
    if type(left) is str or left is None:
        return True
    if isinstance(left, _NUMBERS):
        return _is_same_number(left, right, by_value)
    # Equal values are the usual case. Encoding them is three times as fast as a walk in Python.
    return _encode(left) == _encode(right) or _has_same_numbers(left, right, by_value)


def _has_same_numbers(left: Json, right: Json, by_value: bool) -> bool:
    """Return False if numbers or booleans differ in type, in two values that are equal to Python."""
    if left is right or type(left) is str:
        return True
    if isinstance(left, dict):
        return all(_has_same_numbers(value, right[name], by_value) for name, value in left.items())
    if isinstance(left, (list, tuple)):
        return all(_has_same_numbers(one, other, by_value) for one, other in zip(left, right, strict=True))
    if isinstance(left, msgspec.Struct):
        return _has_same_numbers(msgspec.to_builtins(left), msgspec.to_builtins(right), by_value)
    return _is_same_number(left, right, by_value)


def _is_same_number(left: Json, right: Json, by_value: bool) -> bool:
    if by_value:
        return isinstance(left, bool) is isinstance(right, bool)
    return type(left) is type(right) or not isinstance(left, _NUMBERS)


def read_float(text: str) -> float:
    """Read a float; the `float_hook` of decoders of JSON that others wrote.

    msgspec's own parser takes up to 30 µs for a float near the limits of a double, such as 1e308: a second per 200 KB.
    """
    value = float(text)
    if math.isinf(value):
        raise ValueError("number out of range")
    return value


def with_whole_numbers(value: Json) -> Json:
    """Turn floats without a fraction into integers, as Go's encoder writes them: 3.0 becomes 3.

    Returns the identical value if there is none.
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _INT64_END else value
    if not isinstance(value, (dict, list)):
        return value
    changed: Json = None
    for place, old in value.items() if isinstance(value, dict) else enumerate(value):
        if old.__class__ in _NEVER_WHOLE:
            continue
        new = with_whole_numbers(old)
        if new is not old:
            if changed is None:
                changed = value.copy()
            changed[place] = new
    return value if changed is None else changed
