"""Leaf clusters of the examples, each on an embedded API server of its own with simulated kubelets.

    examples/<example>/clusters/<name>/*.yaml     the objects of leaf cluster <name>

A Secret `<name>-kubeconfig` of an example gets the kubeconfig of the leaf cluster.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from nodeyard.apiserver.process import Serving, running
from nodeyard.app import files
from nodeyard.cli.failures import Failure
from nodeyard.client.api import Client
from nodeyard.demo.summary import read_fleet
from nodeyard.kube.json import Object
from nodeyard.process.clock import SystemClock
from nodeyard.sim.embedded import connect
from nodeyard.sim.world import World

FOLDER: Final = "clusters"
TIMEOUT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_KEY: Final = "kubeconfig"
_LOOPBACK: Final = "127.0.0.1"
_READ_BYTES: Final = 64 * 1024


class Link:
    """The network between the operator and a leaf cluster: forwards TCP connections until it is cut."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def open(self) -> None:
        """Listen, after a cut on the same port again."""
        self._server = await asyncio.start_server(self._forward, _LOOPBACK, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Refuse new connections and abort those that are open."""
        if self._server is not None:
            self._server.close()
        for end in self._ends:
            end.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        self._ends.add(writer)
        try:
            with suppress(OSError):
                upstream_reader, upstream = await asyncio.open_connection(_LOOPBACK, self._upstream_port)
                ends.add(upstream)
                self._ends.add(upstream)
                await asyncio.gather(_copy(reader, upstream), _copy(upstream_reader, writer))
        finally:
            self._ends -= ends
            for end in ends:
                end.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_READ_BYTES):
        writer.write(data)
        await writer.drain()
    writer.close()


class LeafClusters:
    """The running leaf clusters."""

    def __init__(self) -> None:
        self._clients: dict[str, tuple[Client, int, int]] = {}
        self._kubeconfigs: dict[str, bytes] = {}
        self.links: dict[str, Link] = {}

    def add(self, name: str, client: Client, kubeconfig: Path, link: Link, objects: Iterable[Object]) -> None:
        kinds = [each["kind"] for each in objects]
        self._clients[name] = client, kinds.count("Node"), kinds.count("Pod")
        self._kubeconfigs[f"{name}-{_KEY}"] = kubeconfig.read_bytes()
        self.links[name] = link

    async def wait_until_ready(self) -> None:
        """Wait until all nodes are ready and all pods run."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        for name, (client, nodes, pods) in self._clients.items():
            while not (await read_fleet(client)).is_complete(nodes, pods):
                if time.monotonic() > deadline:
                    raise Failure(f"leaf cluster {name} was not ready within {TIMEOUT_SECONDS:.0f} s")
                await asyncio.sleep(_POLL_SECONDS)

    def with_kubeconfig(self, obj: Object) -> Object:
        """Return a kubeconfig Secret with its contents; any other object unchanged."""
        kubeconfig = self._kubeconfigs.get(obj["metadata"]["name"]) if obj["kind"] == "Secret" else None
        if kubeconfig is None:
            return obj
        return {**obj, "data": {**(obj.get("data") or {}), _KEY: base64.b64encode(kubeconfig).decode()}}


@asynccontextmanager
async def run_leaf_clusters(examples: Iterable[Path], directory: Path) -> AsyncIterator[LeafClusters]:
    """Run the leaf clusters of the examples; write their kubeconfigs to the directory."""
    found = LeafClusters()
    async with AsyncExitStack() as stack:
        for name, folder in _folders(examples).items():
            kubeconfig = directory / f"{name}.{_KEY}"
            server, listener = await stack.enter_async_context(running(Serving(), kubeconfig))
            link = Link(listener.port)
            await link.open()
            stack.callback(link.cut)
            kubeconfig.write_text(kubeconfig.read_text().replace(f":{listener.port}", f":{link.port}"))
            client = connect(server)
            objects = files.read([folder])
            await stack.enter_async_context(World(client, SystemClock()))
            await files.send(client, objects, dry_run=False)
            found.add(name, client, kubeconfig, link, (obj for _, obj in objects))
        yield found


def _folders(examples: Iterable[Path]) -> Mapping[str, Path]:
    """Return the folders by name of the cluster."""
    places = [example / FOLDER for example in examples]
    return {each.name: each for place in places if place.is_dir() for each in sorted(place.iterdir()) if each.is_dir()}
