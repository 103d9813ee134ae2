"""Free capacity of a twin's nodes by zone and class, kept up to date with each change of a node or pod."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from nodeyard.kube import pod_requests
from nodeyard.kube.json import Object
from nodeyard.kube.names import INSTANCE_TYPE, ZONE
from nodeyard.kube.quantity import NANO
from nodeyard.kube.resource_list import CPU, MEMORY, parse_amounts
from nodeyard.rehearsal.timeline import Capacity

GIB: Final = 1 << 30
NONE: Final = "-"
"""The zone or class of nodes that have none."""


class Amount(NamedTuple):
    cpu: int = 0
    memory: int = 0

    def plus(self, other: Amount, sign: int = 1) -> Amount:
        return Amount(self.cpu + sign * other.cpu, self.memory + sign * other.memory)


class _Group(NamedTuple):
    zone: str
    node_class: str


@dataclass(slots=True)
class _NodeCapacity:
    group: _Group
    allocatable: Amount
    is_usable: bool


@dataclass(slots=True)
class CapacityTracker:
    """`set_node` and `place` report changes; `series` has what they add up to over time."""

    _nodes: dict[str, _NodeCapacity] = field(default_factory=dict)
    _used: dict[str, Amount] = field(default_factory=dict)
    _placed: dict[tuple[str, str], tuple[str, Amount]] = field(default_factory=dict)
    _free: dict[_Group, tuple[int, Amount]] = field(default_factory=dict)
    _series: dict[_Group, Capacity] = field(default_factory=dict)

    @property
    def series(self) -> list[Capacity]:
        return [found for _, found in sorted(self._series.items())]

    def begin(self) -> None:
        """Forget the past: the series begin with the present, at time 0."""
        self._series.clear()
        for group in self._free:
            self._note(group, 0.0)

    def set_node(self, name: str, node: Object | None, at: float) -> None:
        """Record the state of a node; None if it is gone."""
        known = self._nodes.pop(name, None)
        if known is not None:
            self._count(name, known, -1)
        groups = set() if known is None else {known.group}
        if node is not None:
            new = self._nodes[name] = _capacity(node)
            self._count(name, new, 1)
            groups.add(new.group)
        for group in sorted(groups):
            self._note(group, at)

    def place(self, pod: tuple[str, str], node: str, obj: Object | None, at: float) -> None:
        """Record that a pod takes capacity of a node; with None it does no longer."""
        if obj is not None and self._placed.get(pod, ("",))[0] == node:
            return
        old_node, old = self._placed.pop(pod, ("", Amount()))
        if old_node:
            self._take(old_node, old, -1, at)
        if obj is not None and node:
            amount = requested(obj)
            self._placed[pod] = node, amount
            self._take(node, amount, 1, at)

    def _take(self, name: str, amount: Amount, sign: int, at: float) -> None:
        node = self._nodes.get(name)
        if node is not None:
            self._count(name, node, -1)
        self._used[name] = self._used.get(name, Amount()).plus(amount, sign)
        if node is not None:
            self._count(name, node, 1)
            self._note(node.group, at)

    def _count(self, name: str, node: _NodeCapacity, sign: int) -> None:
        if node.is_usable:
            free = node.allocatable.plus(self._used.get(name, Amount()), -1)
            count, total = self._free.get(node.group, (0, Amount()))
            self._free[node.group] = count + sign, total.plus(free, sign)
        else:
            self._free.setdefault(node.group, (0, Amount()))

    def _note(self, group: _Group, at: float) -> None:
        count, free = self._free[group]
        series = self._series.setdefault(group, Capacity(zone=group.zone, node_class=group.node_class, points=[]))
        point = (round(at, 3), count, round(free.cpu / NANO, 3), round(free.memory / NANO / GIB, 3))
        if series.points and series.points[-1][0] == point[0]:
            series.points[-1] = point
        elif not series.points or series.points[-1][1:] != point[1:]:
            series.points.append(point)


def requested(pod: Object) -> Amount:
    amounts = pod_requests.of_pod(msgspec.convert(pod, pod_requests.RequestingPod))
    return Amount(amounts.get(CPU, 0), amounts.get(MEMORY, 0))


def is_ready(node: Object) -> bool:
    conditions: Iterable[Object] = (node.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _capacity(node: Object) -> _NodeCapacity:
    labels = node["metadata"].get("labels") or {}
    amounts = parse_amounts((node.get("status") or {}).get("allocatable"))
    group = _Group(labels.get(ZONE, NONE), labels.get(INSTANCE_TYPE, NONE))
    is_usable = is_ready(node) and not (node.get("spec") or {}).get("unschedulable")
    return _NodeCapacity(group, Amount(amounts.get(CPU, 0), amounts.get(MEMORY, 0)), is_usable)
