"""Further clusters that examples bring along for the demo: each on an embedded API server of its own.

    examples/<example>/clusters/<name>/*.yaml     what is in the cluster <name>; its kubelets are played

A Secret of an example that is called `<name>-kubeconfig` is filled with the way there.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
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
PATIENCE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1
_KEY: Final = "kubeconfig"


class Neighbours:
    """The clusters that run beside the demo's own."""

    def __init__(self) -> None:
        self._clients: dict[str, tuple[Client, int, int]] = {}
        self._kubeconfigs: dict[str, bytes] = {}

    def join(self, name: str, client: Client, kubeconfig: Path, objects: Iterable[Object]) -> None:
        kinds = [each["kind"] for each in objects]
        self._clients[name] = client, kinds.count("Node"), kinds.count("Pod")
        self._kubeconfigs[f"{name}-{_KEY}"] = kubeconfig.read_bytes()

    async def settle(self) -> None:
        """Their nodes are ready, and their pods run."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        for name, (client, nodes, pods) in self._clients.items():
            while not (await read_fleet(client)).is_complete(nodes, pods):
                if time.monotonic() > deadline:
                    raise Failure(f"the cluster {name} of the examples did not settle in {PATIENCE_SECONDS:.0f} s")
                await asyncio.sleep(_LOOK_SECONDS)

    def filled(self, obj: Object) -> Object:
        """A Secret that is to lead to one of them, with the way there; any other object as it is."""
        kubeconfig = self._kubeconfigs.get(obj["metadata"]["name"]) if obj["kind"] == "Secret" else None
        if kubeconfig is None:
            return obj
        return {**obj, "data": {**(obj.get("data") or {}), _KEY: base64.b64encode(kubeconfig).decode()}}


@asynccontextmanager
async def neighbours(examples: Iterable[Path], directory: Path) -> AsyncIterator[Neighbours]:
    """All that the examples bring, started; their kubeconfigs are written to the directory."""
    found = Neighbours()
    async with AsyncExitStack() as stack:
        for name, folder in _folders(examples).items():
            kubeconfig = directory / f"{name}.{_KEY}"
            server, _ = await stack.enter_async_context(running(Serving(), kubeconfig))
            client = connect(server)
            objects = files.read([folder])
            await stack.enter_async_context(World(client, SystemClock()))
            await files.send(client, objects, dry_run=False)
            found.join(name, client, kubeconfig, (obj for _, obj in objects))
        yield found


def _folders(examples: Iterable[Path]) -> Mapping[str, Path]:
    """By the name of the cluster."""
    places = [example / FOLDER for example in examples]
    return {each.name: each for place in places if place.is_dir() for each in sorted(place.iterdir()) if each.is_dir()}
