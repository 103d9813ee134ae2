"""A simulated world for testing an operator: nodes, pods, machines and releases.

async with World(client, clock, seed=7) as world:
    await world.add_nodes(100, zones=("a", "b", "c"), spare=20)
    await world.fail("node-0007")
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from nodeyard.client.api import Client
from nodeyard.client.resources import NODES, PODS, Resource
from nodeyard.kube.json import Json, Object
from nodeyard.process.clock import Clock
from nodeyard.sim.engine import Engine
from nodeyard.sim.index import Key, key_of
from nodeyard.sim.machines import names
from nodeyard.sim.machines.controllers import Controllers, SimEnvironment, node_of
from nodeyard.sim.nodes import NodeShape, node, renewed_conditions, spare_node
from nodeyard.sim.releases import Releases
from nodeyard.sim.scheduler import NODE, POD, Scheduler
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.stage_set import StageChanges, load_stages
from nodeyard.sim.templates import Function

STAGES: Final = ("nodes", "pods", "scheduling", "drains")
ZONES: Final = ("zone-a", "zone-b", "zone-c")
FAILED: Final = "failed"
DRAIN: Final = "sim.nodeyard.dev/drain"
_CONCURRENT_CREATES: Final = 16
_POLL_SECONDS: Final = 0.2


class World:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        seed: int = 0,
        *,
        stages: Sequence[str] = STAGES,
        extra_stages: Iterable[Path] = (),
        environment: SimEnvironment | None = None,
        services: Collection[Kind] = (),
        changes: StageChanges | None = None,
    ) -> None:
        """`stages` names shipped stages, `extra_stages` further stage files. `environment` is for `providers` and
        `machines`. `services` are kinds with an operator like those in `services.yaml`. `changes` are to the stages."""
        self._client = client.managed_by("sim")
        self._clock = clock
        scheduler = Scheduler(self._client, clock, lambda *mark: self.engine.mark(*mark))
        self.machines = Controllers(self._client, clock, environment or SimEnvironment())
        reconcilers = {
            **self.machines.reconcilers,
            "scheduling": scheduler.reconcilers,
            "releases": Releases(self._client, clock).reconcilers,
        }
        self.engine = Engine(
            self._client,
            load_stages(*stages, extra=extra_stages, services=services, reconcilers=reconcilers, changes=changes),
            clock=clock,
            seed=seed,
            functions={**_TemplateFunctions(clock).table(), **self.machines.functions},
        )
        self.engine.listen(scheduler.observe)
        self.engine.listen(self._fail_node_of_deleted_machine)
        self.engine.listen(self._note_created)
        self._running: asyncio.Task[None] | None = None
        self._created = 0
        self._unseen: set[Key] = set()
        """Objects created here that the informers have not delivered yet."""

    async def run(self) -> None:
        """Simulate until cancelled."""
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

    # objects

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
        """Register nodes, round robin over the zones, the last `spare` of them as spares; return their names."""
        shape = shape or NodeShape()
        now = self._clock.now()
        objects = []
        for number in range(count):
            name = f"{prefix}-{self._created:04d}"
            zone = zones[self._created % len(zones)]
            self._created += 1
            if number >= count - spare:
                objects.append(spare_node(name, now, zone=zone, shape=shape, labels=labels))
            else:
                objects.append(node(name, now, zone=zone, shape=shape, labels=labels, taints=taints))
        for start in range(0, count, _CONCURRENT_CREATES):
            batch = objects[start : start + _CONCURRENT_CREATES]
            await asyncio.gather(*(self._create(NODES, NODE, obj) for obj in batch))
        return [obj["metadata"]["name"] for obj in objects]

    async def add_pods(
        self, count: int, *, namespace: str = "default", prefix: str = "pod", cpu: str = "100m", memory: str = "128Mi"
    ) -> list[str]:
        """Create pods that are to be scheduled; return their names."""
        names = [f"{prefix}-{number:04d}" for number in range(count)]
        requests = {"cpu": cpu, "memory": memory}
        for start in range(0, count, _CONCURRENT_CREATES):
            batch = [_pod(name, namespace, requests) for name in names[start : start + _CONCURRENT_CREATES]]
            await asyncio.gather(*(self._create(PODS, POD, obj) for obj in batch))
        return names

    async def _create(self, resource: Resource[Object], kind: Kind, obj: Object) -> None:
        if self.engine.follows(kind):
            self._unseen.add(key_of(kind, obj))
        try:
            await self._client.create(resource, obj)
        except BaseException:
            self._unseen.discard(key_of(kind, obj))
            raise

    def _note_created(self, kind: Kind, obj: Object, _exists: bool) -> None:
        self._unseen.discard(key_of(kind, obj))

    # incidents

    async def fail(self, name: str) -> None:
        """Stop the machine: its node stops reporting and its pods do not change. The API server does not know."""
        await self._client.get(NODES, name)
        self.stop_machine(name)

    def stop_machine(self, name: str) -> None:
        """Stop the machine of a node that may not be seen yet."""
        self.engine.mark(Key(NODE, "", name), FAILED, True)

    async def recover(self, name: str) -> None:
        await self._client.get(NODES, name)
        self.engine.mark(Key(NODE, "", name), FAILED, False)

    def is_failed(self, name: str) -> bool:
        return FAILED in self.engine.index.marks(Key(NODE, "", name))

    def hold_upgrade(self, namespace: str, control_plane: str, *, is_on: bool = True) -> None:
        """Let this KubeadmControlPlane replace no machine, until called with `is_on=False`."""
        self.engine.mark(Key(names.CONTROL_PLANE, namespace, control_plane), names.HELD, is_on)

    async def drain(self, name: str) -> None:
        """Request a drain of the node; its annotation becomes `done` when the pods are gone."""
        await self._client.patch(NODES, name, {"metadata": {"annotations": {DRAIN: "requested"}}})

    def _fail_node_of_deleted_machine(self, kind: Kind, obj: Object, exists: bool) -> None:
        node = None if exists else node_of(kind, obj)
        if node is not None and self.engine.index.get(key := Key(NODE, "", node)) is not None:
            self.engine.mark(key, FAILED, True)

    async def wait_until_settled(self) -> None:
        """Wait until nothing more happens by itself, except repetition such as lease renewals."""
        quiet = 0
        while quiet < 2:
            await self._clock.sleep(_POLL_SECONDS)
            quiet = quiet + 1 if self.engine.is_settled and not self._unseen else 0

    @property
    def errors(self) -> list[str]:
        """Return the errors of stages, such as requests that the server refused."""
        return self.engine.errors


class _TemplateFunctions:
    """Functions that stage files call with `$call`; one per world, since pod addresses are unique."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._addresses: dict[str, str] = {}
        self._allocated: dict[str, int] = {}

    def table(self) -> Mapping[str, Function]:
        return {"node": self._node, "node_conditions": self._node_conditions, "pod_ip": self._pod_ip}

    def _node(self, name: str, **options: Any) -> Json:
        """Return a Node as its kubelet registers it; the options are those of `sim.nodes.node`."""
        return node(name, self._clock.now(), **options)

    def _node_conditions(self, old: list[Object] | None, now: str, ready: bool = True) -> Json:
        """Return the conditions of the kubelet's next report."""
        return renewed_conditions(old, now, is_ready=ready)

    def _pod_ip(self, pod: str, cidr: str | None = None) -> Json:
        """Return the address of a pod: the next one of its node's range at the first call."""
        if pod not in self._addresses:
            base = (cidr or "10.244.0.0/24").rsplit(".", 1)[0]
            number = self._allocated.get(base, 0)
            self._allocated[base] = number + 1
            self._addresses[pod] = f"{base}.{number % 253 + 2}"
        return self._addresses[pod]


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
