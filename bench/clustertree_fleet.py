"""The fleet of the clustertree benchmark: leaves with nodes and pods, and a watch on the root's nodes.

Each leaf node is mirrored as a node, or a whole leaf as one. The expected allocatable CPU of a mirrored node follows
from the pods created here: a change has arrived when the watch on the root shows it. There are no kubelets, and the
leaves run no controller that would taint nodes without heartbeats.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import msgspec

from bench.load import Call, encode, send_all
from bench.servers import RunningServer, embedded, real
from nodeyard.capabilities.clustertree import names
from nodeyard.client.bodies import LineFramer
from nodeyard.kube.json import Object
from nodeyard.kube.quantity import parse

IN_FLIGHT: Final = 32
NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/namespaces/default/pods"
CLUSTERS: Final = f"/apis/{names.API_VERSION}/{names.PLURAL}"
CONTROLLERS: Final = "*,-node-lifecycle-controller,-taint-eviction-controller"

NODE_MILLIS: Final = 64_000
POD_MILLIS: Final = 10
TIMEOUT_SECONDS: Final = 900.0


# objects


@dataclass
class Leaf:
    """A leaf cluster, and the CPU that its pods request on each node."""

    name: str
    server: RunningServer
    nodes: tuple[str, ...]
    is_whole: bool = False
    """Mirrored as one node instead of node by node."""
    pods: int = 0
    used: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Requested CPU by leaf node, in millicores."""

    def mirror(self, node: str) -> str:
        """Return the root's node that mirrors this one."""
        return names.whole_node(self.name) if self.is_whole else node

    def free_cpu(self, node: str) -> int:
        """Return the expected allocatable CPU of the mirrored node, in millicores."""
        if self.is_whole:
            return len(self.nodes) * NODE_MILLIS - self.pods * POD_MILLIS
        return NODE_MILLIS - self.used[node]

    def expected_cpu(self) -> dict[str, int]:
        """Return the expected allocatable CPU by mirrored node."""
        return {self.mirror(node): self.free_cpu(node) for node in self.nodes}

    def add_pod(self, node: str) -> Call:
        self.pods += 1
        self.used[node] += POD_MILLIS
        return Call("POST", PODS, encode(pod(f"pod-{self.pods:06d}", node)))


@contextmanager
def embedded_leaves(count: int, nodes: int, *, is_whole: bool = False) -> Iterator[list[Leaf]]:
    """Start leaves on embedded servers, each in a process of its own."""
    with ExitStack() as stack:
        servers = [stack.enter_context(embedded(CONTROLLERS)) for _ in range(count)]
        yield [_leaf("leaf", number, server, nodes, is_whole) for number, server in enumerate(servers)]


@contextmanager
def real_leaves(count: int, nodes: int) -> Iterator[list[Leaf]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(real()) for _ in range(count)]
        yield [_leaf("real", number, server, nodes, False) for number, server in enumerate(servers)]


def _leaf(word: str, number: int, server: RunningServer, nodes: int, is_whole: bool) -> Leaf:
    name = f"{word}-{number:02d}"
    return Leaf(name, server, tuple(f"{name}-node-{each:03d}" for each in range(nodes)), is_whole)


def leaf_node(name: str) -> Object:
    amounts = {"cpu": f"{NODE_MILLIS}m", "memory": "256Gi", "pods": "100000"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pod(name: str, node: str) -> Object:
    requests = {"cpu": f"{POD_MILLIS}m", "memory": "16Mi"}
    container = {"name": "main", "image": "registry.example/pause:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [container]},
    }


def cluster(leaf: Leaf) -> Object:
    kubeconfig = base64.b64encode(leaf.server.kubeconfig.read_bytes()).decode()
    models = (
        [] if leaf.is_whole else [{"leafNodeName": each, "nodeSelector": {"nodeName": each}} for each in leaf.nodes]
    )
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": leaf.name},
        "spec": {"kubeconfig": kubeconfig, "clusterTreeOptions": {"enable": True, "leafModels": models}},
    }


async def fill(session: aiohttp.ClientSession, leaf: Leaf, pods: int) -> None:
    """Create the leaf's nodes and spread pods evenly over them."""
    await send_all(session, [Call("POST", NODES, encode(leaf_node(each))) for each in leaf.nodes], IN_FLIGHT)
    await send_all(session, [leaf.add_pod(leaf.nodes[each % len(leaf.nodes)]) for each in range(pods)], IN_FLIGHT)


async def join(session: aiohttp.ClientSession, leaf: Leaf) -> None:
    """Create the leaf's Cluster on the root."""
    await send_all(session, [Call("POST", CLUSTERS, encode(cluster(leaf)))], 1)


# observation


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Status(msgspec.Struct, frozen=True):
    allocatable: dict[str, str] = {}


class _Node(msgspec.Struct):
    metadata: _Meta
    status: _Status = _Status()


class _Event(msgspec.Struct):
    object: _Node


class _List(msgspec.Struct):
    metadata: _Meta
    items: list[_Node] = []


class MirroredCpu:
    """The history of allocatable CPU of the root's nodes, in millicores."""

    def __init__(self) -> None:
        self.history: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        self._changed = asyncio.Event()

    def see(self, node: str, millis: int, at: float) -> None:
        known = self.history[node]
        if not known or known[-1][1] != millis:
            known.append((at, millis))
            self._changed.set()

    def current(self, node: str) -> int | None:
        known = self.history.get(node)
        return known[-1][1] if known else None

    def time_reached(self, node: str, millis: int, since: float) -> float | None:
        """Return the first time after `since` at which the node had at most this CPU; None if never."""
        return next((at for at, shown in self.history[node] if at >= since and shown <= millis), None)

    def change_times(self, node: str, since: float) -> list[float]:
        """Return the times after `since` at which the node's CPU changed."""
        return [at for at, _ in self.history[node] if at >= since]

    async def wait_for(self, wanted: dict[str, int], seconds: float = TIMEOUT_SECONDS) -> None:
        """Wait until all nodes have the wanted CPU."""
        missing = dict(wanted)
        try:
            async with asyncio.timeout(seconds):
                while missing := {node: free for node, free in missing.items() if self.current(node) != free}:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            node, free = next(iter(missing.items()))
            found = f"{node} has CPU {self.current(node)}, want {free} millicores"
            raise RuntimeError(f"{len(missing)} nodes do not mirror their leaves: {found}") from None


@asynccontextmanager
async def watch_mirrors(session: aiohttp.ClientSession) -> AsyncIterator[MirroredCpu]:
    """Watch the root's nodes. A closed watch resumes at the last version."""
    shown = MirroredCpu()
    async with session.get(NODES) as response:
        listed = msgspec.json.decode(await response.read(), type=_List)
    for each in listed.items:
        _see(shown, each)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(_watch(session, listed.metadata.resource_version, shown))
        yield shown
        task.cancel()


async def _watch(session: aiohttp.ClientSession, version: str, shown: MirroredCpu) -> None:
    decode = msgspec.json.Decoder(_Event).decode
    while True:
        query = {"watch": "true", "resourceVersion": version}
        async with session.get(NODES, params=query, timeout=aiohttp.ClientTimeout(total=None)) as response:
            response.raise_for_status()
            framer = LineFramer()
            async for chunk in response.content.iter_any():
                for line in framer.feed(chunk):
                    node = decode(line).object
                    version = node.metadata.resource_version
                    _see(shown, node)


def _see(shown: MirroredCpu, node: _Node) -> None:
    cpu = node.status.allocatable.get("cpu")
    if cpu is not None:
        shown.see(node.metadata.name, parse(cpu).milli(), time.perf_counter())
