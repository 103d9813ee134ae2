"""One step of a rolling update: how many machines each MachineSet of a MachineDeployment gets. Pure functions.

The new set grows up to the wanted number plus `maxSurge`. Old sets shrink as far as `maxUnavailable` allows, machines
that are unavailable anyway first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from nodeyard.kube.json import Object

_REPLACING = ("version", "failureDomain", "bootstrap", "infrastructureRef")
"""Fields that cannot change in place. References are compared by name, not by the content of the template."""


@dataclass(frozen=True)
class SetSize:
    """The size of a MachineSet."""

    name: str
    replicas: int
    actual: int
    available: int


def identity(machine_spec: Object) -> str:
    """Return a hash of the fields that cannot change in place."""
    parts = {key: machine_spec[key] for key in _REPLACING if key in machine_spec}
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]


def scaled(wanted: int, current: SetSize, old: Sequence[SetSize], surge: int, unavailable: int) -> dict[str, int]:
    """Return the new replicas of each MachineSet that changes."""
    sizes = {one.name: one.replicas for one in (current, *old)}
    sizes[current.name] = _grown(wanted, current, old, surge)
    _shrink(sizes, wanted, current, old, unavailable)
    return {one.name: sizes[one.name] for one in (current, *old) if sizes[one.name] != one.replicas}


def amount(value: Any, wanted: int, *, rounds_up: bool) -> int:
    """Resolve a number or a percentage of the wanted machines."""
    if isinstance(value, int):
        return value
    share = int(str(value).removesuffix("%")) * wanted / 100
    return math.ceil(share) if rounds_up else math.floor(share)


def _grown(wanted: int, current: SetSize, old: Sequence[SetSize], surge: int) -> int:
    if current.replicas >= wanted or not any(one.replicas or one.actual for one in old):
        return wanted
    present = sum(max(one.replicas, one.actual) for one in (current, *old))
    room = max(0, wanted + surge - present)
    return min(wanted, current.replicas + room)


def _shrink(sizes: dict[str, int], wanted: int, current: SetSize, old: Sequence[SetSize], unavailable: int) -> None:
    least = wanted - unavailable
    joining = sizes[current.name] - min(current.available, sizes[current.name])
    spare = sum(sizes.values()) - least - joining
    for one in old:
        broken = max(0, one.replicas - one.available)
        gone = max(0, min(broken, spare))
        sizes[one.name] -= gone
        spare -= gone
    surplus = min(current.available + sum(min(one.available, sizes[one.name]) for one in old) - least, spare)
    for one in old:
        gone = max(0, min(sizes[one.name], surplus))
        sizes[one.name] -= gone
        surplus -= gone
