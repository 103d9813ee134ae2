"""The demo: starts a cluster, a simulated fleet and the operator, and prints what they have converged to."""

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
from nodeyard.demo.leaf_clusters import run_leaf_clusters
from nodeyard.demo.showcase import example_folders, object_table, run_operator
from nodeyard.demo.summary import Fleet, mirror_table, read_fleet, zone_table
from nodeyard.process.clock import SystemClock
from nodeyard.sim import stand_in_crds
from nodeyard.sim.embedded import connect
from nodeyard.sim.machine_defaults import MachineDeploymentDefaults
from nodeyard.sim.machines.controllers import SimEnvironment
from nodeyard.sim.scenarios import stages_of
from nodeyard.sim.world import STAGES, World
from nodeyard.testing import ControlPlane
from nodeyard.testing.binaries import MissingBinaryError

TIMEOUT_SECONDS: Final = 60.0
SECONDS_PER_NODE: Final = 0.25
_CONTROLLERS = ("namespace", "garbage-collector", "disruption", "node-lifecycle", "taint-eviction")
_POLL_SECONDS = 0.5
CORE_CONTROLLERS: Final = "machines"
"""The stages of Cluster API's core controllers, which the real control plane runs."""
FLUX: Final = "flux"
"""The stand-in CRDs of Flux, which the real control plane needs as well."""
ROLE: Final = {"cke.cybozu.com/role": "compute"}
ZONES: Final = ("dc1", "dc2", "dc3")
GPU: Final = {"node.kubernetes.io/gpu": "true"}
"""Labels that the examples select nodes by; one node has a GPU."""


async def show(nodes: int, *, once: bool, real: bool) -> None:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="nodeyard-demo-") as directory:
        kubeconfig = Path(directory, "kubeconfig")
        console.print(f"Starting the {'real control plane' if real else 'embedded API server'} ...")
        async with (
            _cluster(real, kubeconfig) as client,
            _world(client, kubeconfig, real) as world,
            run_leaf_clusters(example_folders(), Path(directory)) as leaf_clusters,
        ):
            started = time.monotonic()
            await _fill(world, client, nodes, console)
            await leaf_clusters.wait_until_ready()
            console.print("Starting the operator and applying the examples ...")
            async with run_operator(kubeconfig, client, leaf_clusters):
                fleet = await read_fleet(client)
                for table in (zone_table(fleet), mirror_table(fleet), await object_table(client)):
                    console.print()
                    console.print(table)
                console.print()
                where = "the real control plane" if real else "the embedded API server"
                seconds = time.monotonic() - started
                console.print(f"{len(fleet.nodes)} nodes and {len(fleet.pods)} pods on {where} in {seconds:.1f} s")
                if not once:
                    _print_next_steps(console, kubeconfig)
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
    if CORE_CONTROLLERS in _stages():
        plane.start_cluster_api()
    return plane


def _stages() -> tuple[str, ...]:
    """Return the stages that the capabilities need."""
    return stages_of(each.name for each in CAPABILITIES)


@asynccontextmanager
async def _world(client: Client, kubeconfig: Path, real: bool) -> AsyncIterator[World]:
    """Simulate the fleet; of Cluster API only the providers where its core controllers run."""
    clock = SystemClock()
    stages = [stage for stage in _stages() if not (real and stage == CORE_CONTROLLERS)]
    groups = [group for group in stand_in_crds.groups_of(stages) if not real or group == FLUX]
    if groups:
        await stand_in_crds.install(client, clock, *groups)
    environment = SimEnvironment(kubeconfig=lambda: yaml.safe_load(kubeconfig.read_text()))
    async with World(client, clock, stages=(*STAGES, *stages), environment=environment) as world:
        yield world


async def _fill(world: World, client: Client, count: int, console: Console) -> Fleet:
    """Register nodes, two fifths of them spare, and one pod for each of the others."""
    spare = count * 2 // 5
    timeout = TIMEOUT_SECONDS + count * SECONDS_PER_NODE
    with console.status(f"Registering {count} nodes ...") as status:
        first, *_ = await world.add_nodes(count, zones=ZONES, spare=spare, labels=ROLE)
        await client.patch(NODES, first, {"metadata": {"labels": GPU}})
        await _wait_until_complete(client, status, count, 0, timeout, world)
        console.print(f"{count} nodes are ready")
        await world.add_pods(count - spare)
        return await _wait_until_complete(client, status, count, count - spare, timeout, world)


async def _wait_until_complete(
    client: Client, status: Status, nodes: int, pods: int, timeout: float, world: World
) -> Fleet:
    deadline = time.monotonic() + timeout
    while not (fleet := await read_fleet(client)).is_complete(nodes, pods):
        state = f"{fleet.ready} of {nodes} nodes ready, {fleet.running} of {pods} pods running"
        status.update(f"{state} ...")
        if time.monotonic() > deadline:
            reason = f"the first error: {world.errors[0]}" if world.errors else "try fewer nodes with --nodes"
            raise Failure(f"the fleet did not settle in {timeout:.0f} s: {state}; {reason}")
        await asyncio.sleep(_POLL_SECONDS)
    return fleet


def _print_next_steps(console: Console, kubeconfig: Path) -> None:
    console.print("\nRunning until Ctrl-C. Try in another terminal:\n")
    console.print(f"  export KUBECONFIG={kubeconfig}", soft_wrap=True)
    for command in (
        "kubectl get nodeyard -A",
        "nodeyard why pool/example/gpu",
        "kubectl scale nodetemplate compute --replicas=5 && nodeyard plan",
    ):
        console.print(f"  {command}", soft_wrap=True)
