"""JSON values: their types, and the equality used in the whole project.

Objects travel through the API server as plain dicts. They are persistent values: once handed over, a dict or list is
never changed in place; a function that changes something returns a new one that shares the untouched parts. That makes
copies cheap, lets a diff skip whatever is the same object, and makes an accidental write to the store impossible to
overlook.
"""

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

    `by_value` takes 1 and 1.0 for equal, never 1 and true. Structs are compared as what they are encoded to.
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
    """Look for numbers and booleans that differ in type, in two values that are equal to Python."""
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


def with_whole_numbers(value: Json) -> Json:
    """Turn floats without a fraction into integers, as Go's encoder writes them: 3.0 becomes 3.

    Returns the very same value where there is none.
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
