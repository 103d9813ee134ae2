"""Summary of the fleet, counted from the objects of the API server: first what is not fine.

It has at most 25 lines of 80 columns.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nodeyard.client.api import Client
from nodeyard.client.resources import LEASES, NODES, PODS
from nodeyard.kube import names
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Plan
from nodeyard.sim.nodes import SPARE_ROLE

LAYOUT: Final[Mapping[str, Any]] = {
    "box": SIMPLE_HEAD,
    "title_justify": "left",
    "title_style": "bold",
    "pad_edge": False,
}


PROBLEMS: Final = 4
"""Lines for what is not fine."""
NAME_WIDTH: Final = 40


class _Condition(msgspec.Struct):
    type: str
    status: str
    message: str = ""


class _Metadata(msgspec.Struct):
    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _NodeStatus(msgspec.Struct):
    conditions: list[_Condition] = []
    allocatable: dict[str, str] = {}


class NodeView(msgspec.Struct):
    metadata: _Metadata
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)

    @property
    def zone(self) -> str:
        return self.metadata.labels.get(names.ZONE, "-")

    @property
    def is_ready(self) -> bool:
        return any(one.type == "Ready" and one.status == "True" for one in self.status.conditions)

    @property
    def message(self) -> str:
        return next((one.message for one in self.status.conditions if one.type == "Ready"), "has not reported yet")

    @property
    def is_spare(self) -> bool:
        return self.metadata.labels.get(SPARE_ROLE) == "true"

    @property
    def is_mirror(self) -> bool:
        """Return whether the node mirrors nodes of a leaf cluster."""
        return self.metadata.labels.get(names.MIRRORED_NODE) == "true"


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _PodStatus(msgspec.Struct):
    phase: str = ""


class PodView(msgspec.Struct):
    metadata: _Metadata
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class LeaseView(msgspec.Struct):
    metadata: _Metadata


@dataclass(frozen=True, slots=True)
class Fleet:
    nodes: list[NodeView]
    pods: list[PodView]
    leases: set[str]

    @property
    def ready(self) -> int:
        return sum(node.is_ready for node in self.nodes)

    @property
    def running(self) -> int:
        return sum(pod.status.phase == "Running" for pod in self.pods)

    def is_complete(self, nodes: int, pods: int) -> bool:
        return self.ready >= nodes and self.running >= pods and len(self.leases) >= nodes


class ObjectState(NamedTuple):
    """An object of a capability, and what its condition says."""

    capability: str
    kind: str
    name: str
    is_ok: bool
    is_settled: bool
    """False while the object has no condition, or is not Ready."""
    message: str


async def read_fleet(client: Client) -> Fleet:
    nodes, pods, leases = await asyncio.gather(
        client.list(NODES.decoded_as(NodeView)),
        client.list(PODS.decoded_as(PodView)),
        client.list(LEASES.decoded_as(LeaseView), names.LEASE_NAMESPACE),
    )
    return Fleet(nodes.items, pods.items, {lease.metadata.name for lease in leases.items})


def summarize(fleet: Fleet, objects: Sequence[ObjectState], held: Collection[Plan]) -> RenderableType:
    """Return the objects that are not fine, the number of those that are, and the nodes by zone."""
    problems = [(f"plan {plan.id}", f"held: approve it with nodeyard approve {plan.id}") for plan in held]
    problems += [(f"{each.kind.lower()}/{each.name}", each.message) for each in objects if not each.is_ok]
    problems += [(f"node/{each.metadata.name}", each.message) for each in fleet.nodes if not each.is_ready]
    more = [(f"and {len(problems) - PROBLEMS} more", "")] if len(problems) > PROBLEMS else []
    title = f"Not fine: {len(problems)}" if problems else "Everything is fine"
    fine = [
        (name, _count_kinds(objects, name)) for name in dict.fromkeys(each.capability for each in objects if each.is_ok)
    ]
    return Group(
        _list(title, "red", [*problems[:PROBLEMS], *more]),
        "",
        _list("Fine", "", fine),
        "",
        zone_table(fleet),
    )


def _list(title: str, style: str, rows: Sequence[tuple[str, str]]) -> RenderableType:
    """Return a heading and one line for each row, cut at the width of the screen."""
    width = min(NAME_WIDTH, max((len(name) for name, _ in rows), default=0))
    lines = [
        Text.assemble(
            "  ", (f"{name:<{width}}", style), "  ", " ".join(message.split()), no_wrap=True, overflow="ellipsis"
        )
        for name, message in rows
    ]
    return Group(Text(title, style=f"bold {style}".strip()), *lines)


def _count_kinds(objects: Sequence[ObjectState], capability: str) -> str:
    kinds = Counter(each.kind for each in objects if each.capability == capability and each.is_ok)
    plurals = {kind: f"{kind}es" if kind.endswith("s") else f"{kind}s" for kind in kinds}
    return ", ".join(counted(number, kind, plurals[kind]) for kind, number in kinds.items())


def zone_table(fleet: Fleet) -> Table:
    """Return a table of nodes and pods by zone."""
    columns = ("zone", "nodes", "ready", "workers", "spare", "mirrors", "pods", "leases")
    table = Table(*columns, show_footer=True, title="Nodes by zone", **LAYOUT)
    table.box = None
    for column in table.columns[1:]:
        column.justify = "right"
    zones = {node.metadata.name: node.zone for node in fleet.nodes}
    pods = Counter(zones.get(pod.spec.node_name, "-") for pod in fleet.pods if pod.status.phase == "Running")
    rows = []
    for zone in sorted(set(zones.values())):
        inside = [node for node in fleet.nodes if node.zone == zone]
        spare = sum(node.is_spare for node in inside)
        mirrored = sum(node.is_mirror for node in inside)
        leases = sum(node.metadata.name in fleet.leases for node in inside)
        ready = sum(node.is_ready for node in inside)
        rows.append((len(inside), ready, len(inside) - spare - mirrored, spare, mirrored, pods[zone], leases))
        table.add_row(zone, *map(str, rows[-1]))
    totals = [sum(column) for column in zip(*rows, strict=True)]
    for column, total in zip(table.columns, ["all", *map(str, totals)], strict=True):
        column.footer = total
    return table


def mirror_table(fleet: Fleet) -> Table:
    """Return a table of the nodes that mirror leaf clusters, with their free resources."""
    columns = ("node", "leaf cluster", "ready", "cpu", "memory", "pods", "others")
    table = Table(*columns, title="Nodes that mirror leaf clusters", **LAYOUT)
    for node in (each for each in fleet.nodes if each.is_mirror):
        cluster, free = node.metadata.annotations.get(names.MIRRORED_CLUSTER, ""), dict(node.status.allocatable)
        usual = [free.pop(name, "-") for name in ("cpu", "memory", "pods")]
        others = ", ".join(f"{name}: {amount}" for name, amount in sorted(free.items()))
        table.add_row(node.metadata.name, cluster, "yes" if node.is_ready else "no", *usual, others)
    return table
