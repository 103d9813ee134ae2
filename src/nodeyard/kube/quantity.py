"""Kubernetes quantities: `500m`, `1Gi`, `12e6`.

An amount is exact: a whole number of billionths, the smallest step of Kubernetes. A quantity keeps its notation, so
that a sum of `Mi` is shown in `Mi`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, total_ordering

NANO = 10**9
"""Nano-units in a unit."""
MILLI = 10**6
"""Nano-units in a milli-unit."""
_LARGEST_BINARY = (2**63 - 1) * NANO
# Bounds digits and powers of ten: larger numbers mean nothing and take forever to write out.
_MOST_DIGITS = 1000

_FORM = re.compile(r"([+-]?)(\d*+)(?:\.(\d*+))?([eEinumkKMGTP]*[-+]?\d*)")


class Notation(Enum):
    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = ("", *_BINARY)


class QuantityError(ValueError):
    """Not a quantity; the text is that of the API server."""


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """A quantity, equal and ordered by amount alone: `1000m` is `1`."""

    nano: int
    notation: Notation = Notation.DECIMAL

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __bool__(self) -> bool:
        return self.nano != 0

    def __add__(self, other: Quantity) -> Quantity:
        """Add; the sum has the notation of the first amount that is not zero."""
        return Quantity(self.nano + other.nano, self.notation if self.nano else other.notation)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.notation if self.nano else other.notation)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.notation)

    def __str__(self) -> str:
        if self.nano == 0:
            return "0"
        if self.notation is Notation.BINARY and self.nano % NANO == 0 and abs(self.nano) >= 1024 * NANO:
            return _binary_text(self.nano // NANO)
        mantissa, exponent = _decimal_parts(self.nano)
        if self.notation is Notation.EXPONENT:
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"

    def value(self) -> int:
        """Return whole units, rounded away from zero."""
        whole = -(-abs(self.nano) // NANO)
        return whole if self.nano >= 0 else -whole

    def milli(self) -> int:
        """Return milli-units, rounded away from zero, as schedulers count CPU."""
        thousandths = -(-abs(self.nano) * 1000 // NANO)
        return thousandths if self.nano >= 0 else -thousandths


def of(units: int, notation: Notation = Notation.DECIMAL) -> Quantity:
    return Quantity(units * NANO, notation)


@lru_cache(maxsize=8192)
def parse(text: str) -> Quantity:
    """Parse a quantity; raise QuantityError."""
    return _scan(text)[0]


@lru_cache(maxsize=8192)
def canonical(text: str) -> str:
    """Return the text as the server stores it: `1000m` becomes `1`, `1024Mi` becomes `1Gi`.

    Like the server, this keeps a text that looks canonical, including `1.500` and `+1`.
    """
    quantity, looks_canonical = _scan(text)
    return text if looks_canonical else str(quantity)


@lru_cache(maxsize=8192)
def canonical_to_milli(text: str) -> str:
    """Return `canonical`, rounded up to thousandths, as the server stores amounts in a ResourceList."""
    quantity, looks_canonical = _scan(text)
    rounded = Quantity(quantity.milli() * MILLI, quantity.notation)
    return text if looks_canonical and rounded == quantity else str(rounded)


def _scan(text: str) -> tuple[Quantity, bool]:
    match = _FORM.fullmatch(text)
    if not match or not text:
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, whole, fraction, suffix = match.groups()
    fraction = fraction or ""
    if max(len(whole), len(fraction), len(suffix)) > _MOST_DIGITS:
        raise QuantityError(f"quantities must have no more than {_MOST_DIGITS} digits")
    base, exponent, notation = _interpret(suffix)
    whole = whole.lstrip("0") or "0"
    digits = int(whole + fraction)
    nano = _nano(digits, len(fraction), base, exponent)
    if notation is Notation.BINARY:
        nano = min(nano, _LARGEST_BINARY)
        looks_canonical = not fraction and bool(digits & 7) and _fits_fast_path(whole, exponent)
    else:
        scale = exponent - len(fraction)
        looks_canonical = scale >= -9 and scale % 3 == 0 and _has_canonical_digits(whole + fraction)
    return Quantity(-nano if sign == "-" else nano, notation), looks_canonical


def _interpret(suffix: str) -> tuple[int, int, Notation]:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix], Notation.DECIMAL
    if suffix in _BINARY:
        return 2, _BINARY[suffix], Notation.BINARY
    if len(suffix) > 1 and suffix[0] in "eE" and re.fullmatch(r"[+-]?\d+", suffix[1:]):
        return 10, max(-_MOST_DIGITS, min(int(suffix[1:]), _MOST_DIGITS)), Notation.EXPONENT
    raise QuantityError("unable to parse quantity's suffix")


def _nano(digits: int, fraction_digits: int, base: int, exponent: int) -> int:
    """Return nano-units, rounded up, so that a tiny request is not zero."""
    if base == 2:
        numerator, shift = digits * 2**exponent * NANO, -fraction_digits
    else:
        numerator, shift = digits, exponent - fraction_digits + 9
    if shift >= 0:
        return int(numerator * 10**shift)
    return int(-(-numerator // 10**-shift))


def _has_canonical_digits(digits: str) -> bool:
    return len(digits) <= 18 and not digits.endswith("000") and digits[0] != "0"


def _fits_fast_path(whole: str, exponent: int) -> bool:
    return 14 - len(whole) - int(exponent * 3 / 10) >= 0


def _decimal_parts(nano: int) -> tuple[int, int]:
    """Return the mantissa and the largest exponent that is a multiple of three."""
    mantissa, exponent = nano, -9
    while mantissa % 1000 == 0 and exponent < 18:
        mantissa //= 1000
        exponent += 3
    return mantissa, exponent


def _binary_text(units: int) -> str:
    step = 0
    while units % 1024 == 0 and step < len(_BINARY_SUFFIX) - 1:
        units //= 1024
        step += 1
    return f"{units}{_BINARY_SUFFIX[step]}"
