"""A pod's class of service, from what its containers ask for."""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.kube.json import Object
from nodeyard.kube.quantity import parse

COUNTED = ("cpu", "memory")


def quality_of_service(spec: Object) -> str:
    """Guaranteed: every container limits CPU and memory, and asks for all of it. BestEffort: nobody asks anything."""
    if spec.get("resources"):
        return _class([spec["resources"]])
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return _class(container.get("resources") or {} for container in containers)


def _class(all_resources: Iterable[Object]) -> str:
    asks, is_guaranteed = False, True
    for resources in all_resources:
        requests, limits = _counted(resources.get("requests")), _counted(resources.get("limits"))
        asks = asks or bool(requests or limits)
        is_guaranteed = (
            is_guaranteed
            and len(limits) == len(COUNTED)
            and all(requests.get(name, amount) == amount for name, amount in limits.items())
        )
    if not asks:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _counted(amounts: Object | None) -> Object:
    found = {name: parse(amounts[name]) for name in COUNTED if amounts and name in amounts}
    return {name: amount for name, amount in found.items() if amount}
