"""A world to put an operator into: nodes, pods, and what happens to them.

async with World(client, clock, seed=7) as world:
    await world.add_nodes(100, zones=("a", "b", "c"), spare=20)
    await world.fail("node-0007")
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from nodeyard.client.api import Client
from nodeyard.client.resources import NODES, PODS, Resource
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock
from nodeyard.sim.engine import Engine
from nodeyard.sim.index import Key, key_of
from nodeyard.sim.machines import names
from nodeyard.sim.machines.controllers import Controllers, SimEnvironment, node_of
from nodeyard.sim.nodes import NodeShape, node, spare_node
from nodeyard.sim.releases import Releases
from nodeyard.sim.scheduler import NODE, POD, Scheduler
from nodeyard.sim.stage_book import load_book
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.stage_functions import Functions

STAGES: Final = ("nodes", "pods", "scheduling", "drains")
ZONES: Final = ("zone-a", "zone-b", "zone-c")
FAILED: Final = "failed"
DRAIN: Final = "sim.nodeyard.dev/drain"
_MAKING_AT_ONCE: Final = 16
_LOOK_SECONDS: Final = 0.2


class World:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        seed: int = 0,
        *,
        stages: Sequence[str] = STAGES,
        extra_stages: Iterable[Path] = (),
        around: SimEnvironment | None = None,
        services: Collection[Kind] = (),
    ) -> None:
        """`around` is for the stages of Cluster API, `providers` and `machines`. The operators of the kinds in
        `services` are played as the stages of that name play their own."""
        self._client = client.managed_by("sim")
        self._clock = clock
        self._scheduler = Scheduler(self._client, clock)
        self.machines = Controllers(self._client, clock, around or SimEnvironment())
        self._releases = Releases(self._client, clock)
        self.engine = Engine(
            self._client,
            load_book(*stages, extra=extra_stages, services=services),
            clock=clock,
            seed=seed,
            functions={**Functions(clock).table(), **self.machines.functions},
            procedures={
                "schedule": self._scheduler.bind,
                **self.machines.procedures,
                **self._releases.procedures,
            },
        )
        self.engine.listen(self._scheduler.see)
        self.engine.listen(self._see_machine)
        self.engine.listen(self._see_made)
        self._running: asyncio.Task[None] | None = None
        self._made = 0
        self._unseen: set[Key] = set()
        """What was made here and the watch has not told of yet."""

    async def run(self) -> None:
        """Let the world go on until cancelled."""
        await self.engine.run()

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    # making

    async def add_nodes(
        self,
        count: int,
        *,
        zones: Sequence[str] = ZONES,
        spare: int = 0,
        prefix: str = "node",
        shape: NodeShape | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Object] = (),
    ) -> list[str]:
        """Register nodes, in turn over the zones; the last `spare` of them wait to be taken. Their names."""
        shape = shape or NodeShape()
        now = self._clock.now()
        objects = []
        for number in range(count):
            name = f"{prefix}-{self._made:04d}"
            zone = zones[self._made % len(zones)]
            self._made += 1
            if number >= count - spare:
                objects.append(spare_node(name, now, zone=zone, shape=shape, labels=labels))
            else:
                objects.append(node(name, now, zone=zone, shape=shape, labels=labels, taints=taints))
        for start in range(0, count, _MAKING_AT_ONCE):
            batch = objects[start : start + _MAKING_AT_ONCE]
            await asyncio.gather(*(self._make(NODES, NODE, obj) for obj in batch))
        return [obj["metadata"]["name"] for obj in objects]

    async def add_pods(
        self, count: int, *, namespace: str = "default", prefix: str = "pod", cpu: str = "100m", memory: str = "128Mi"
    ) -> list[str]:
        """Plain pods, to be scheduled. Their names."""
        names = [f"{prefix}-{number:04d}" for number in range(count)]
        requests = {"cpu": cpu, "memory": memory}
        for start in range(0, count, _MAKING_AT_ONCE):
            batch = [_pod(name, namespace, requests) for name in names[start : start + _MAKING_AT_ONCE]]
            await asyncio.gather(*(self._make(PODS, POD, obj) for obj in batch))
        return names

    async def _make(self, resource: Resource[Object], kind: Kind, obj: Object) -> None:
        if self.engine.follows(kind):
            self._unseen.add(key_of(kind, obj))
        try:
            await self._client.create(resource, obj)
        except BaseException:
            self._unseen.discard(key_of(kind, obj))
            raise

    def _see_made(self, kind: Kind, obj: Object, _is_there: bool) -> None:
        self._unseen.discard(key_of(kind, obj))

    # happening

    async def fail(self, name: str) -> None:
        """The machine stops: no report, no lease, no pod of it changes any more. The API server is not told."""
        await self._client.get(NODES, name)
        self.engine.mark(Key(NODE, "", name), FAILED, True)

    async def recover(self, name: str) -> None:
        await self._client.get(NODES, name)
        self.engine.mark(Key(NODE, "", name), FAILED, False)

    def hold_upgrade(self, namespace: str, control_plane: str, *, is_on: bool = True) -> None:
        """This KubeadmControlPlane replaces no machine, until released."""
        self.engine.mark(Key(names.CONTROL_PLANE, namespace, control_plane), names.HELD, is_on)

    def _see_machine(self, kind: Kind, obj: Object, is_there: bool) -> None:
        node = None if is_there else node_of(kind, obj)
        if node is not None and self.engine.index.get(key := Key(NODE, "", node)) is not None:
            self.engine.mark(key, FAILED, True)

    def is_failed(self, name: str) -> bool:
        return FAILED in self.engine.index.marks(Key(NODE, "", name))

    async def drain(self, name: str) -> None:
        """Ask somebody to drain it; the annotation says `done` when it is."""
        await self._client.patch(NODES, name, {"metadata": {"annotations": {DRAIN: "requested"}}})

    async def settled(self) -> None:
        """Wait until nothing more will happen by itself."""
        quiet = 0
        while quiet < 2:
            await self._clock.sleep(_LOOK_SECONDS)
            quiet = quiet + 1 if self.engine.is_settled and not self._unseen else 0

    @property
    def faults(self) -> list[str]:
        """What stages tried and were refused: empty in a sound world."""
        return self.engine.faults


def _pod(name: str, namespace: str, requests: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "sim"}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "sim", "resources": {"requests": dict(requests)}}],
        },
    }
