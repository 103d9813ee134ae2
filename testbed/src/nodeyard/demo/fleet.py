"""The demo: starts a cluster, a simulated fleet and the operator, takes the tour and prints a summary."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import yaml

from nodeyard.apiserver.process import Serving, running
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.cli.failures import Failure
from nodeyard.cli.signals import wait_for_signal
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.demo.leaf_clusters import run_leaf_clusters
from nodeyard.demo.screen import Screen
from nodeyard.demo.showcase import example_folders, read_objects, run_operator
from nodeyard.demo.summary import read_fleet, summarize
from nodeyard.demo.tour import Tour
from nodeyard.process.clock import SystemClock
from nodeyard.sim import stand_in_crds
from nodeyard.sim.embedded import connect
from nodeyard.sim.machine_defaults import MachineDeploymentDefaults
from nodeyard.sim.machines.controllers import SimEnvironment
from nodeyard.sim.scenarios import stages_of
from nodeyard.sim.world import STAGES, World
from nodeyard.testing import ControlPlane
from nodeyard.testing.binaries import MissingBinaryError

PAUSE_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.25
POLL_SECONDS_PER_NODE: Final = 0.0005
_CONTROLLERS = ("namespace", "garbage-collector", "disruption", "node-lifecycle", "taint-eviction")
CORE_CONTROLLERS: Final = "machines"
"""The stages of Cluster API's core controllers, which the real control plane runs."""
FLUX: Final = "flux"
"""The stand-in CRDs of Flux, which the real control plane needs as well."""


async def show(nodes: int, *, once: bool, is_fast: bool, real: bool) -> None:
    """Run the demo until it ends, or until SIGINT or SIGTERM."""
    demo = asyncio.create_task(_show(nodes, once=once, is_fast=is_fast, real=real))
    stopped = asyncio.create_task(wait_for_signal())
    await asyncio.wait((demo, stopped), return_when=asyncio.FIRST_COMPLETED)
    for task in (demo, stopped):
        task.cancel()
    with suppress(asyncio.CancelledError):
        await demo


async def _show(nodes: int, *, once: bool, is_fast: bool, real: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="nodeyard-demo-") as directory:
        kubeconfig = Path(directory, "kubeconfig")
        # A list of a large fleet takes as long as hundreds of the operator's writes.
        interval = max(POLL_SECONDS, nodes * POLL_SECONDS_PER_NODE)
        screen = Screen(kubeconfig, pause=0.0 if is_fast else PAUSE_SECONDS, interval=interval)
        where = "the real control plane" if real else "the embedded API server"
        screen.console.print(f"Starting {where} and the operator ...")
        async with (
            _cluster(real, kubeconfig) as client,
            _world(client, kubeconfig, real) as world,
            run_operator(kubeconfig) as (operator, address),
            run_leaf_clusters(example_folders(), Path(directory)) as leaf_clusters,
        ):
            started = time.monotonic()
            _introduce(screen, address)
            tour = Tour(screen, client, world, operator, leaf_clusters)
            await tour.run(nodes, approves=is_fast)
            fleet = await read_fleet(client)
            screen.console.print()
            screen.console.print(summarize(fleet, await read_objects(client), tour.held))
            screen.console.print(
                f"{len(fleet.nodes)} nodes and {len(fleet.pods)} pods on {where} in {time.monotonic() - started:.1f} s"
            )
            if not once:
                _offer_next_steps(screen)
                await asyncio.Future()


def _introduce(screen: Screen, address: str) -> None:
    console = screen.console
    console.print(f"\nDashboard: {address}", style="bold", soft_wrap=True)
    console.print(
        "\nOpen it in a browser: every node is a tile, and tiles move while the operator works. The fleet is "
        "simulated: nodes, kubelets, machines and two leaf clusters. The API and the operator are not. Lines that "
        "begin with KUBECONFIG= are commands for another terminal."
    )


def _offer_next_steps(screen: Screen) -> None:
    screen.console.print("\nRunning until Ctrl-C. Try in another terminal:", style="bold")
    screen.offer("kubectl", "get", "nodeyard", "-A")
    screen.offer("kubectl", "scale", "nodetemplate", "compute", "--replicas=5")
    screen.offer("nodeyard", "why", "pool/example/gpu")
    screen.offer("nodeyard", "why", "latticeservice/inference")
    screen.offer("nodeyard", "status")
    screen.offer("nodeyard", "plan")


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
