"""In-process cluster for `nodeyard plan -f` when no cluster is configured."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from nodeyard.apiserver.server import Server
from nodeyard.client.api import Client
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.crds import install
from nodeyard.sim import stand_in_crds
from nodeyard.sim.embedded import connect
from nodeyard.sim.scenarios import stages_of


@asynccontextmanager
async def offline_cluster(capabilities: Sequence[Capability]) -> AsyncIterator[Client]:
    """Serve an empty cluster with the CRDs of the capabilities and of the projects they work with."""
    # A fixed seed gives the same uids, and so the same plan ids, in every run.
    server = Server(seed=0)
    await server.start(())
    try:
        client, clock = connect(server), SystemClock()
        groups = stand_in_crds.groups_of(stages_of(each.name for each in capabilities))
        await stand_in_crds.install(client, clock, *groups)
        await install(client, capabilities, clock)
        yield client
    finally:
        await server.stop()
