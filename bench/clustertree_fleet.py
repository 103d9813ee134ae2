"""The tree that clustertree is measured on: leaves with nodes and pods, a root, and who watches what the root shows.

Every leaf node is mirrored by a node of its own, or all of a leaf by one. What a mirrored node should offer is known
here from the pods that were made, so that a change has arrived when a watcher of the root has seen the sum it leads to.
Nobody plays kubelet: leaf nodes are as they were made, and their servers run nothing that would doubt them.
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

from bench.load import Call, encoded, send
from bench.servers import Running, embedded, real
from nodeyard.app.capabilities import choose
from nodeyard.capabilities.clustertree import names
from nodeyard.client.api import Client
from nodeyard.client.bodies import LineFramer
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.kube.json import Object
from nodeyard.kube.quantity import parse
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.crds import install as install_kinds

IN_FLIGHT: Final = 32
NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/namespaces/default/pods"
CLUSTERS: Final = f"/apis/{names.API_VERSION}/{names.PLURAL}"
CONTROLLERS: Final = "*,-node-lifecycle-controller,-taint-eviction-controller"

NODE_MILLIS: Final = 64_000
POD_MILLIS: Final = 10
PATIENCE_SECONDS: Final = 900.0


# what there is


@dataclass
class Leaf:
    """A leaf cluster, and what its pods take away on each of its nodes."""

    name: str
    server: Running
    nodes: tuple[str, ...]
    is_whole: bool = False
    """It is mirrored as one node, and not as one for each of its own."""
    pods: int = 0
    used: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """By leaf node, in thousandths of a CPU."""

    def mirror(self, node: str) -> str:
        """The root's node that shows this one."""
        return names.whole_node(self.name) if self.is_whole else node

    def left(self, node: str) -> int:
        """What the root's node that shows this one should offer now."""
        if self.is_whole:
            return len(self.nodes) * NODE_MILLIS - self.pods * POD_MILLIS
        return NODE_MILLIS - self.used[node]

    def offers(self) -> dict[str, int]:
        """What each of the root's nodes should offer now."""
        return {self.mirror(node): self.left(node) for node in self.nodes}

    def add_pod(self, node: str) -> Call:
        self.pods += 1
        self.used[node] += POD_MILLIS
        return Call("POST", PODS, encoded(pod(f"pod-{self.pods:06d}", node)))


@contextmanager
def embedded_leaves(count: int, nodes: int, *, is_whole: bool = False) -> Iterator[list[Leaf]]:
    """Each in a process of its own."""
    with ExitStack() as stack:
        servers = [stack.enter_context(embedded(CONTROLLERS)) for _ in range(count)]
        yield [_leaf("leaf", number, server, nodes, is_whole) for number, server in enumerate(servers)]


@contextmanager
def real_leaves(count: int, nodes: int) -> Iterator[list[Leaf]]:
    with ExitStack() as stack:
        servers = [stack.enter_context(real()) for _ in range(count)]
        yield [_leaf("real", number, server, nodes, False) for number, server in enumerate(servers)]


def _leaf(word: str, number: int, server: Running, nodes: int, is_whole: bool) -> Leaf:
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


async def install(server: Running) -> None:
    client = Client(HttpTransport(load_kubeconfig([server.kubeconfig])))
    try:
        await install_kinds(client, choose([names.CAPABILITY]), SystemClock())
    finally:
        await client.close()


async def fill(opened: aiohttp.ClientSession, leaf: Leaf, pods: int) -> None:
    """Its nodes, and pods evenly on them."""
    await send(opened, [Call("POST", NODES, encoded(leaf_node(each))) for each in leaf.nodes], IN_FLIGHT)
    await send(opened, [leaf.add_pod(leaf.nodes[each % len(leaf.nodes)]) for each in range(pods)], IN_FLIGHT)


async def join(opened: aiohttp.ClientSession, leaf: Leaf) -> None:
    """Make it known to the root."""
    await send(opened, [Call("POST", CLUSTERS, encoded(cluster(leaf)))], 1)


# what is seen


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


class Shown:
    """What the nodes of the root offer, in thousandths of a CPU, and when that was first seen."""

    def __init__(self) -> None:
        self.history: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        self._news = asyncio.Event()

    def see(self, node: str, millis: int, at: float) -> None:
        known = self.history[node]
        if not known or known[-1][1] != millis:
            known.append((at, millis))
            self._news.set()

    def current(self, node: str) -> int | None:
        known = self.history.get(node)
        return known[-1][1] if known else None

    def reached(self, node: str, millis: int, since: float) -> float | None:
        """When the node was first seen after `since` to offer no more than this; None before."""
        return next((at for at, shown in self.history[node] if at >= since and shown <= millis), None)

    def changes(self, node: str, since: float) -> list[float]:
        """When its sum changed, after `since`."""
        return [at for at, _ in self.history[node] if at >= since]

    async def show(self, wanted: dict[str, int], seconds: float = PATIENCE_SECONDS) -> None:
        """Until every one of these nodes offers what it should."""
        missing = dict(wanted)
        try:
            async with asyncio.timeout(seconds):
                while missing := {node: free for node, free in missing.items() if self.current(node) != free}:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            node, free = next(iter(missing.items()))
            found = f"{node} offers {self.current(node)}m CPU and should offer {free}m"
            raise RuntimeError(f"{len(missing)} nodes do not show what their leaves have: {found}") from None


@asynccontextmanager
async def watching(opened: aiohttp.ClientSession) -> AsyncIterator[Shown]:
    """Another watcher of the root's nodes. A watch that breaks goes on where it was."""
    shown = Shown()
    async with opened.get(NODES) as answer:
        listed = msgspec.json.decode(await answer.read(), type=_List)
    for each in listed.items:
        _see(shown, each)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(_watch(opened, listed.metadata.resource_version, shown))
        yield shown
        task.cancel()


async def _watch(opened: aiohttp.ClientSession, version: str, shown: Shown) -> None:
    decode = msgspec.json.Decoder(_Event).decode
    while True:
        query = {"watch": "true", "resourceVersion": version}
        async with opened.get(NODES, params=query, timeout=aiohttp.ClientTimeout(total=None)) as answer:
            answer.raise_for_status()
            framer = LineFramer()
            async for chunk in answer.content.iter_any():
                for line in framer.feed(chunk):
                    node = decode(line).object
                    version = node.metadata.resource_version
                    _see(shown, node)


def _see(shown: Shown, node: _Node) -> None:
    cpu = node.status.allocatable.get("cpu")
    if cpu is not None:
        shown.see(node.metadata.name, parse(cpu).milli(), time.perf_counter())
