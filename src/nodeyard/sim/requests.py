"""How much a pod asks for and how much a node has, as plain integers: CPU in thousandths, all else in units."""

from __future__ import annotations

from collections.abc import Mapping

from nodeyard.kube import quantity
from nodeyard.kube.json import Object

Amounts = dict[str, int]


def amounts(resources: Mapping[str, str] | None) -> Amounts:
    """A list of resources in numbers."""
    return {name: _amount(name, text) for name, text in (resources or {}).items()}


def of_pod(pod: Object) -> Amounts:
    """What scheduling counts: the containers together, or the largest init container where that is more."""
    spec = pod["spec"]
    total: Amounts = {"pods": 1}
    for container in spec.get("containers") or ():
        add(total, _requests(container))
    sidecars: Amounts = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            add(sidecars, _requests(container))
            continue
        for name, value in _requests(container).items():
            total[name] = max(total.get(name, 0), value + sidecars.get(name, 0))
    add(total, sidecars)
    add(total, amounts(spec.get("overhead")))
    return total


def add(total: Amounts, more: Mapping[str, int], sign: int = 1) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + sign * value


def _requests(container: Object) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))


def _amount(name: str, text: str) -> int:
    parsed = quantity.parse(str(text))
    return parsed.milli() if name == "cpu" else parsed.value()
