"""ResourceList arithmetic in integers: node capacity, pod requests.

    {"cpu": "500m", "memory": "1Gi"}   ->   {"cpu": 500_000_000, "memory": 2**30 * 10**9}

Amounts are whole billionths of a unit, as in `quantity`: sums are exact, and subtraction undoes addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from nodeyard.kube.quantity import MILLI, NANO, QuantityError, parse

Amounts: TypeAlias = dict[str, int]

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
HUGE_PAGES: Final = "hugepages-"
"""Prefix of the resource names of huge pages."""


def parse_amounts(resources: Mapping[str, str] | None) -> Amounts:
    """Parse a ResourceList; raise QuantityError with the resource and the invalid text.

    No API server stores a negative amount, but an untrusted one may send it: it counts as zero."""
    amounts: Amounts = {}
    if resources:
        for name, text in resources.items():
            try:
                amounts[name] = max(0, parse(text).nano)
            except QuantityError as error:
                raise QuantityError(f"{name}: {text!r}: {error}") from None
    return amounts


def add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def raise_to(total: Amounts, other: Mapping[str, int]) -> None:
    """Return the maximum of each resource."""
    for name, amount in other.items():
        if amount > total.get(name, amount - 1):
            total[name] = amount


def step(name: str) -> int:
    """Return the smallest amount that schedulers count: one milli-CPU, or one unit of any other resource."""
    return MILLI if name == CPU else NANO


def round_up(amounts: Mapping[str, int]) -> Amounts:
    """Round up to the steps in which schedulers count."""
    rounded: Amounts = {}
    for name, amount in amounts.items():
        unit = MILLI if name == CPU else NANO
        rounded[name] = amount if amount % unit == 0 else amount + unit - amount % unit
    return rounded
