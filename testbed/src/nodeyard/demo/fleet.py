"""The demo's fleet: starts a server, fills it, waits until everything is as it shall be, and shows it."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import yaml
from rich.console import Console
from rich.status import Status

from nodeyard.apiserver.process import Serving, running
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.cli.failures import Failure
from nodeyard.cli.signals import until_stopped
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import NODES
from nodeyard.demo.leaf_clusters import neighbours
from nodeyard.demo.showcase import at_work, examples, roots
from nodeyard.demo.summary import Fleet, mirrors, read_fleet, table
from nodeyard.process.clock import SystemClock
from nodeyard.sim import stand_in_crds
from nodeyard.sim.embedded import connect
from nodeyard.sim.machine_defaults import MachineDeploymentDefaults
from nodeyard.sim.machines.controllers import SimEnvironment
from nodeyard.sim.scenarios import stages_of
from nodeyard.sim.world import STAGES, World
from nodeyard.testing import ControlPlane
from nodeyard.testing.binaries import MissingBinaryError

PATIENCE_SECONDS: Final = 60.0
SECONDS_PER_NODE: Final = 0.25
_CONTROLLERS = ("namespace", "garbage-collector", "disruption", "node-lifecycle", "taint-eviction")
_LOOK_SECONDS = 0.5
PLAYED: Final = "machines"
"""The stage file of Cluster API's own controllers, which the real control plane has."""
FLUX: Final = "flux"
"""The kinds of Flux, which the real control plane does not bring either."""
ROLE: Final = {"cke.cybozu.com/role": "compute"}
ZONES: Final = ("dc1", "dc2", "dc3")
GPU: Final = {"node.kubernetes.io/gpu": "true"}
"""What the examples select nodes by; one node has a GPU."""


async def show(nodes: int, *, once: bool, real: bool) -> None:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="nodeyard-demo-") as directory:
        kubeconfig = Path(directory, "kubeconfig")
        console.print(f"Starting the {'real control plane' if real else 'embedded API server'} ...")
        async with (
            _cluster(real, kubeconfig) as client,
            _world(client, kubeconfig, real) as world,
            neighbours(examples(), Path(directory)) as beside,
        ):
            begun = time.monotonic()
            await _fill(world, client, nodes, console)
            await beside.settle()
            console.print("Starting the operator and applying the examples ...")
            async with at_work(kubeconfig, client, beside):
                fleet = await read_fleet(client)
                console.print(table(fleet))
                console.print(mirrors(fleet))
                console.print(await roots(client))
                where = "the real control plane" if real else "the embedded API server"
                seconds = time.monotonic() - begun
                console.print(f"{len(fleet.nodes)} nodes and {len(fleet.pods)} pods on {where} in {seconds:.1f} s")
                if not once:
                    _invite(console, kubeconfig)
                    await until_stopped()


@asynccontextmanager
async def _cluster(real: bool, kubeconfig: Path) -> AsyncIterator[Client]:
    if not real:
        async with running(Serving(plugins=(MachineDeploymentDefaults(),)), kubeconfig) as (server, _):
            yield connect(server)
        return
    try:
        plane = await asyncio.to_thread(_start_plane)
    except MissingBinaryError as error:
        raise Failure(str(error)) from None
    try:
        kubeconfig.write_bytes(plane.kubeconfig.read_bytes())
        client = Client(HttpTransport(load_config(kubeconfig)))
        try:
            yield client
        finally:
            await client.close()
    finally:
        await asyncio.to_thread(plane.close)


def _start_plane() -> ControlPlane:
    plane = ControlPlane(controllers=_CONTROLLERS)
    plane.start()
    if PLAYED in _stages():
        plane.start_cluster_api()
    return plane


def _stages() -> tuple[str, ...]:
    """The stage files beside those of nodes and pods."""
    return stages_of(each.name for each in CAPABILITIES)


@asynccontextmanager
async def _world(client: Client, kubeconfig: Path, real: bool) -> AsyncIterator[World]:
    """The real Cluster API is not played where it runs; its providers are in either case."""
    clock = SystemClock()
    stages = [stage for stage in _stages() if not (real and stage == PLAYED)]
    groups = [group for group in stand_in_crds.groups_of(stages) if not real or group == FLUX]
    if groups:
        await stand_in_crds.install(client, clock, *groups)
    environment = SimEnvironment(kubeconfig=lambda: yaml.safe_load(kubeconfig.read_text()))
    async with World(client, clock, stages=(*STAGES, *stages), environment=environment) as world:
        yield world


async def _fill(world: World, client: Client, count: int, console: Console) -> Fleet:
    """Two fifths of the nodes are spare; a pod for each of the others, made when there is where to put them."""
    spare = count * 2 // 5
    patience = PATIENCE_SECONDS + count * SECONDS_PER_NODE
    with console.status(f"Registering {count} nodes ...") as status:
        first, *_ = await world.add_nodes(count, zones=ZONES, spare=spare, labels=ROLE)
        await client.patch(NODES, first, {"metadata": {"labels": GPU}})
        await _until(client, status, count, 0, patience, world)
        console.print(f"{count} nodes are ready")
        await world.add_pods(count - spare)
        return await _until(client, status, count, count - spare, patience, world)


async def _until(client: Client, status: Status, nodes: int, pods: int, patience: float, world: World) -> Fleet:
    deadline = time.monotonic() + patience
    while not (fleet := await read_fleet(client)).is_complete(nodes, pods):
        state = f"{fleet.ready} of {nodes} nodes ready, {fleet.running} of {pods} pods running"
        status.update(f"{state} ...")
        if time.monotonic() > deadline:
            reason = f"the first refusal: {world.errors[0]}" if world.errors else "try fewer with --nodes"
            raise Failure(f"the fleet did not settle in {patience:.0f} s: {state}; {reason}")
        await asyncio.sleep(_LOOK_SECONDS)
    return fleet


def _invite(console: Console, kubeconfig: Path) -> None:
    console.print("\nIt goes on until Ctrl-C. To look at it from another terminal:\n")
    console.print(f"  export KUBECONFIG={kubeconfig}", soft_wrap=True)
    for command in (
        "kubectl get nodeyard -A",
        "nodeyard why pool/example/gpu",
        "kubectl scale nodetemplate compute --replicas=5 && nodeyard plan",
    ):
        console.print(f"  {command}", soft_wrap=True)
