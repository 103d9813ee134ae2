"""What stage files can `$call`: values that a template cannot say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nodeyard.kube.json import Json, Object
from nodeyard.process.clock import Clock
from nodeyard.sim.nodes import node, renewed_conditions
from nodeyard.sim.templates import Function


class Functions:
    """One per world: addresses are given out once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._addresses: dict[str, str] = {}
        self._given: dict[str, int] = {}

    def table(self) -> Mapping[str, Function]:
        return {"node": self.node, "node_conditions": self.node_conditions, "pod_ip": self.pod_ip}

    def node(self, name: str, **options: Any) -> Json:
        """A Node as its kubelet registers it; the options are those of `sim.nodes.node`."""
        now: datetime = self._clock.now()
        return node(name, now, **options)

    def node_conditions(self, old: list[Object] | None, now: str, ready: bool = True) -> Json:
        """The conditions of a kubelet's next report."""
        return renewed_conditions(old, now, is_ready=ready)

    def pod_ip(self, pod: str, cidr: str | None = None) -> Json:
        """The next address of a node's range; asked again for the same pod, the same."""
        if pod not in self._addresses:
            base = (cidr or "10.244.0.0/24").rsplit(".", 1)[0]
            number = self._given.get(base, 0)
            self._given[base] = number + 1
            self._addresses[pod] = f"{base}.{number % 253 + 2}"
        return self._addresses[pod]
