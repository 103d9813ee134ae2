"""Faults of a rehearsal.

zone-lost=a                 all nodes of zone a stop at once
boot-fails=0.3              three of ten new machines never boot
leaf-silent=east@10m+5m     leaf cluster east does not answer for five minutes, ten minutes after the change
slow-api=500ms              each request of the operator takes so much longer
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from nodeyard.kube.json import Object
from nodeyard.kube.names import ZONE
from nodeyard.rehearsal.recorder import Recorder
from nodeyard.rehearsal.twin import Site, Twin
from nodeyard.sim.scheduler import NODE
from nodeyard.sim.stage_format import Kind, seconds

ZONE_LOST: Final = "zone-lost"
BOOT_FAILS: Final = "boot-fails"
LEAF_SILENT: Final = "leaf-silent"
SLOW_API: Final = "slow-api"
NAMES: Final = (ZONE_LOST, BOOT_FAILS, LEAF_SILENT, SLOW_API)


class Fault(NamedTuple):
    name: str
    value: str
    at: float = 0.0
    """Seconds after the change."""
    duration: float | None = None
    """None: until the end."""

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


def parse_fault(text: str) -> Fault:
    """Parse `NAME=VALUE[@START][+DURATION]`; ValueError for other text."""
    name, equals, rest = text.partition("=")
    rest, plus, duration = rest.partition("+")
    value, at, start = rest.partition("@")
    if not equals or name not in NAMES or not value:
        raise ValueError(f'"{text}" is not NAME=VALUE[@START][+DURATION] with one of {", ".join(NAMES)}')
    fault = Fault(name, value, seconds(start) if at else 0.0, seconds(duration) if plus else None)
    if name == SLOW_API:
        seconds(value)
    if name == BOOT_FAILS:
        if at or plus:
            raise ValueError(f"{text}: {BOOT_FAILS} holds for the whole rehearsal")
        boot_failures([fault])
    return fault


def boot_failures(faults: Iterable[Fault]) -> float:
    """Return the share of machines that never boot. Raises ValueError."""
    for fault in faults:
        if fault.name == BOOT_FAILS:
            try:
                rate = float(fault.value)
            except ValueError:
                rate = -1.0
            if not 0 <= rate <= 1:
                raise ValueError(f"{fault}: the rate is a number between 0 and 1")
            return rate
    return 0.0


class Faults:
    """Begins and ends faults on a twin."""

    def __init__(self, twin: Twin, recorder: Recorder) -> None:
        self._twin, self._recorder = twin, recorder
        self._lost_zones: set[str] = set()
        twin.host.world.engine.listen(self._fail_new_node)

    async def begin(self, fault: Fault) -> None:
        self._recorder.note("fault begins", str(fault))
        if fault.name == ZONE_LOST:
            self._lost_zones.add(fault.value)
            for name in self._nodes_of(fault.value):
                await self._twin.host.world.fail(name)
        elif fault.name == LEAF_SILENT:
            self._leaf(fault).link.cut()
        elif fault.name == SLOW_API:
            self._twin.host.link.latency = seconds(fault.value)

    async def end(self, fault: Fault) -> None:
        self._recorder.note("fault ends", str(fault))
        if fault.name == ZONE_LOST:
            self._lost_zones.discard(fault.value)
            for name in self._nodes_of(fault.value):
                await self._twin.host.world.recover(name)
        elif fault.name == LEAF_SILENT:
            self._leaf(fault).link.restore()
        elif fault.name == SLOW_API:
            self._twin.host.link.latency = 0.0

    def check(self, fault: Fault) -> None:
        """Raise LookupError for a zone or leaf that is not there."""
        if fault.name == LEAF_SILENT:
            self._leaf(fault)
        if fault.name == ZONE_LOST and not self._nodes_of(fault.value):
            raise LookupError(f"{fault}: no node has the label {ZONE}={fault.value}")

    def _nodes_of(self, zone: str) -> list[str]:
        found = (entity.object for entity in self._twin.host.world.engine.index.all(NODE))
        return sorted(each["metadata"]["name"] for each in found if _zone(each) == zone)

    def _leaf(self, fault: Fault) -> Site:
        leaf = self._twin.leaves.get(fault.value)
        if leaf is None:
            known = ", ".join(sorted(self._twin.leaves)) or "none"
            raise LookupError(f'{fault}: no leaf cluster "{fault.value}"; there are: {known}')
        return leaf

    def _fail_new_node(self, kind: Kind, obj: Object, exists: bool) -> None:
        """Stop a machine that starts in a lost zone."""
        if kind == NODE and exists and _zone(obj) in self._lost_zones:
            self._twin.host.world.stop_machine(obj["metadata"]["name"])


def _zone(node: Object) -> str:
    return str((node["metadata"].get("labels") or {}).get(ZONE, ""))
