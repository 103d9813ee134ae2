"""How much a pod asks for and how much a node has, of plain objects, as schedulers count: see `kube.amounts`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from nodeyard.kube import pod_requests
from nodeyard.kube.json import Object
from nodeyard.kube.quantity import NANO
from nodeyard.kube.resource_list import PODS, Amounts, parse_amounts, round_up

__all__ = ["Amounts", "add", "amounts", "of_pod"]


def amounts(resources: Mapping[str, str] | None) -> Amounts:
    """A list of resources in numbers."""
    return round_up(parse_amounts(resources))


def of_pod(pod: Object) -> Amounts:
    """What scheduling counts: its requests, and one pod."""
    return {**pod_requests.of_pod(msgspec.convert(pod, pod_requests.RequestingPod)), PODS: NANO}


def add(total: Amounts, more: Mapping[str, int], sign: int = 1) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + sign * value
