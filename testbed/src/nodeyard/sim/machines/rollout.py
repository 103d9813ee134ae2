"""How a MachineDeployment's machines are shared out over its MachineSets: one step of a rolling update, pure.

New machines come first, as many above the wanted number as `maxSurge` allows; old ones go as far as enough machines are
available for `maxUnavailable`. Machines that are not available anyway go before those that are.
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
"""What a machine cannot become in place. References count by name, whatever stands behind them."""


@dataclass(frozen=True)
class Generation:
    """One MachineSet, as far as the rollout looks at it."""

    name: str
    replicas: int
    actual: int
    available: int


def identity(machine_spec: Object) -> str:
    """Equal for machines that need not replace each other."""
    parts = {key: machine_spec[key] for key in _REPLACING if key in machine_spec}
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:10]


def scaled(wanted: int, current: Generation, old: Sequence[Generation], surge: int, unavailable: int) -> dict[str, int]:
    """How many machines each of them shall have next; only those that change."""
    sizes = {one.name: one.replicas for one in (current, *old)}
    sizes[current.name] = _grown(wanted, current, old, surge)
    _shrink(sizes, wanted, current, old, unavailable)
    return {one.name: sizes[one.name] for one in (current, *old) if sizes[one.name] != one.replicas}


def amount(value: Any, wanted: int, *, rounds_up: bool) -> int:
    """A number, or a percentage of the wanted ones."""
    if isinstance(value, int):
        return value
    share = int(str(value).removesuffix("%")) * wanted / 100
    return math.ceil(share) if rounds_up else math.floor(share)


def _grown(wanted: int, current: Generation, old: Sequence[Generation], surge: int) -> int:
    if current.replicas >= wanted or not any(one.replicas or one.actual for one in old):
        return wanted
    present = sum(max(one.replicas, one.actual) for one in (current, *old))
    room = max(0, wanted + surge - present)
    return min(wanted, current.replicas + room)


def _shrink(
    sizes: dict[str, int], wanted: int, current: Generation, old: Sequence[Generation], unavailable: int
) -> None:
    least = wanted - unavailable
    still_coming = sizes[current.name] - min(current.available, sizes[current.name])
    spare = sum(sizes.values()) - least - still_coming
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
