"""The planner of spares alone, on one core, with a very large fleet in three states.

cold        all nodes are spares, and 90 % of them are claimed by one plan
converged   the same fleet after that plan: everything is read, nothing is done
scarce      templates of ten priorities want twice the nodes there are, so that every shortage is explained

The same with a tenth of the nodes, and with a tenth of the templates: planning time must not grow faster than the
fleet.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from bench.harness import Contestant, Requirement, Result, compare
from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.kube.json import Object
from nodeyard.kube.names import INSTANCE_TYPE
from nodeyard.kube.objects import Node
from nodeyard.kube.patch import merge_patch
from nodeyard.plan.model import Planned
from nodeyard.process import garbage_collection
from nodeyard.process.clock import EPOCH
from nodeyard.sim.nodes import NodeShape, spare_node

COLD = "cold, seconds of one core"
CONVERGED = "converged, seconds of one core"
SCARCE = "scarce, seconds of one core"
METRICS = (COLD, CONVERGED, SCARCE)

SHAPES = tuple(NodeShape(instance_type=f"sim.{number}xlarge") for number in range(1, 21))
ZONES = 5
PRIORITIES = 10
SECONDS = 5.0
GROWTH = 13.0
REPEATED = 10
"""Repetitions with a tenth of the nodes, because a single plan is too short to measure."""


@dataclass(frozen=True)
class Size:
    nodes: int
    templates: int
    times: int = 1
    """Number of plans in a round."""

    @property
    def name(self) -> str:
        return f"{self.nodes:,} nodes x {self.templates:,} templates"


FULL = Size(100_000, 1_000)
FEWER_NODES = Size(10_000, 1_000, times=REPEATED)
FEWER_TEMPLATES = Size(100_000, 100)


def run() -> Iterator[Result]:
    sizes = (FULL, FEWER_NODES, FEWER_TEMPLATES)
    requirements = [Requirement(metric, FULL.name, at_most=SECONDS) for metric in METRICS]
    for smaller in sizes[1:]:
        requirements += [Requirement(metric, FULL.name, smaller.name, at_most=GROWTH) for metric in METRICS]
    contestants = [contestant(size) for size in sizes]
    # The operator does the same once its caches are synced.
    garbage_collection.settle()
    yield compare("spares-plan", contestants, requirements=requirements, warm_up=False)


def contestant(size: Size) -> Contestant:
    """Build the fleets once, before the measurements."""
    nodes = fleet(size.nodes)
    enough, twice = (templates(size, share) for share in (0.9, 2.0))
    cold = SparesSnapshot(nodes, enough)
    snapshots = {COLD: cold, CONVERGED: apply_plan(cold, plan(cold, EPOCH)), SCARCE: SparesSnapshot(nodes, twice)}
    return Contestant(
        size.name, lambda: {metric: time_plan(snapshot, size.times) for metric, snapshot in snapshots.items()}
    )


def time_plan(snapshot: SparesSnapshot, times: int) -> float:
    """Return the mean CPU time of a plan, each after a garbage collection."""
    spent = 0.0
    for _ in range(times):
        gc.collect()
        began = time.process_time()
        plan(snapshot, EPOCH)
        spent += time.process_time() - began
    return spent / times


def fleet(count: int) -> list[Node]:
    """Build decoded nodes, as a cache has them."""
    return [msgspec.convert(_with_identity(_spare(number)), Node) for number in range(count)]


def templates(size: Size, share: float) -> list[NodeTemplate]:
    """Build templates that together want this share of the nodes."""
    wanted = max(1, int(size.nodes * share / size.templates))
    return [msgspec.convert(_template(number, wanted), NodeTemplate) for number in range(size.templates)]


def apply_plan(seen: SparesSnapshot, planned: Planned) -> SparesSnapshot:
    """Return the snapshot after all patches of the plan."""
    nodes = {node.metadata.name: node for node in seen.nodes}
    for action in planned.plan.actions:
        if action.object.kind == "Node":
            name = action.object.name
            nodes[name] = msgspec.convert(
                merge_patch(msgspec.to_builtins(nodes[name]), planned.write(action).body), Node
            )
    return SparesSnapshot(list(nodes.values()), seen.templates)


def _spare(number: int) -> Object:
    # Shapes and zones are dealt so that every shape is in every zone.
    zone = f"zone-{number // len(SHAPES) % ZONES}"
    return spare_node(f"node-{number:06d}", EPOCH, zone=zone, shape=SHAPES[number % len(SHAPES)])


def _with_identity(obj: Object) -> Object:
    name = obj["metadata"]["name"]
    return {**obj, "metadata": {**obj["metadata"], "uid": f"uid-{name}", "resourceVersion": "1"}}


def _template(number: int, wanted: int) -> Object:
    return _with_identity(
        {
            "metadata": {"name": f"template-{number:04d}", "generation": 1, "finalizers": [names.FINALIZER]},
            "spec": {
                "nodes": wanted,
                "priority": number // len(SHAPES) % PRIORITIES,
                "selector": {"matchLabels": {INSTANCE_TYPE: SHAPES[number % len(SHAPES)].instance_type}},
                "template": {
                    "metadata": {"labels": {"team": f"team-{number:04d}"}, "annotations": {"fleet/owner": "platform"}},
                    "spec": {"taints": [{"key": "team", "value": f"team-{number:04d}", "effect": "NoSchedule"}]},
                },
            },
        }
    )
