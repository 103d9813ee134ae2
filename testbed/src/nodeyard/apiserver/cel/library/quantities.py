"""The quantity library: `quantity('1.5Gi').isGreaterThan(quantity('1G'))`.

Two habits of the API server are kept because rules see them. Whether a quantity is an integer depends on how it is
written: `1000m` and `1.0` are not. And a sum or difference may be on the left of `==` but not on the right, where it is
`no such overload`.
"""

from __future__ import annotations

import re
from typing import Any

from nodeyard.apiserver.cel.declarations import Overload, function, member
from nodeyard.apiserver.cel.errors import EvaluationError, no_such_overload
from nodeyard.apiserver.cel.values import INT_MAX, INT_MIN, Opaque
from nodeyard.kube import quantity
from nodeyard.kube.quantity import NANO, QuantityError

_FORM = re.compile(r"[+-]?0*(\d*)(?:\.(\d*))?([a-zA-Z]*)([-+]?\d*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MOST_DIGITS = 18


class Quantity(Opaque):
    """A quantity in billionths. `scale` is the power of ten of the server's int64, None if it is an inf.Dec."""

    __slots__ = ("is_derived", "nano", "scale")
    type_name = "kubernetes.Quantity"

    def __init__(self, nano: int, scale: int | None, *, is_derived: bool = False) -> None:
        self.nano = nano
        self.scale = scale
        self.is_derived = is_derived

    def equals(self, other: Any) -> bool:
        if not isinstance(other, Quantity) or other.is_derived:
            raise no_such_overload()
        return self.nano == other.nano

    def as_integer(self) -> int | None:
        if self.scale is None or self.scale < 0:
            return None
        units = self.nano // NANO
        return units if INT_MIN <= units <= INT_MAX else None


def _scale(text: str) -> int | None:
    """Return the power of ten of the last digit if the quantity fits an int64 with a scale."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    whole, fraction, suffix, exponent = (part or "" for part in match.groups())
    digits = len(whole or "0") + len(fraction)
    if suffix in _BINARY:
        is_kept = not fraction and 14 - digits - int(_BINARY[suffix] * 3 / 10) >= 0
        return 0 if is_kept else None
    power = int(exponent) if exponent else _DECIMAL[suffix]
    scale = power - len(fraction)
    return scale if digits <= _MOST_DIGITS and scale >= -9 else None


def parse(text: str) -> Quantity:
    try:
        return Quantity(quantity.parse(text).nano, _scale(text))
    except QuantityError as error:
        raise EvaluationError(str(error)) from None


def is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except QuantityError:
        return False
    return True


def as_integer(amount: Quantity) -> int:
    value = amount.as_integer()
    if value is None:
        raise EvaluationError("cannot convert value to integer")
    return value


def add(left: Quantity, right: Quantity | int) -> Quantity:
    return _combined(left, right, 1)


def subtract(left: Quantity, right: Quantity | int) -> Quantity:
    return _combined(left, right, -1)


def _combined(left: Quantity, right: Quantity | int, sign: int) -> Quantity:
    other = right if isinstance(right, Quantity) else Quantity(right * NANO, 0)
    total = left.nano + sign * other.nano
    if left.nano == 0:
        scale = other.scale
    elif other.nano == 0:
        scale = left.scale
    elif left.scale is None or other.scale is None:
        scale = None
    else:
        scale = min(left.scale, other.scale)
    return Quantity(total, scale, is_derived=True)


def compare(left: Quantity, right: Quantity) -> int:
    return (left.nano > right.nano) - (left.nano < right.nano)


_TWO = "kubernetes.Quantity, kubernetes.Quantity"

OVERLOADS: list[Overload] = [
    function("quantity", "string -> kubernetes.Quantity", parse),
    function("isQuantity", "string -> bool", is_quantity),
    function("sign", "kubernetes.Quantity -> int", lambda amount: (amount.nano > 0) - (amount.nano < 0)),
    member("isInteger", "kubernetes.Quantity -> bool", lambda amount: amount.as_integer() is not None),
    member("asInteger", "kubernetes.Quantity -> int", as_integer),
    member("asApproximateFloat", "kubernetes.Quantity -> double", lambda amount: amount.nano / NANO),
    member("isGreaterThan", f"{_TWO} -> bool", lambda left, right: compare(left, right) > 0),
    member("isLessThan", f"{_TWO} -> bool", lambda left, right: compare(left, right) < 0),
    member("compareTo", f"{_TWO} -> int", compare),
    member("add", f"{_TWO} -> kubernetes.Quantity", add),
    member("add", "kubernetes.Quantity, int -> kubernetes.Quantity", add),
    member("sub", f"{_TWO} -> kubernetes.Quantity", subtract),
    member("sub", "kubernetes.Quantity, int -> kubernetes.Quantity", subtract),
]
