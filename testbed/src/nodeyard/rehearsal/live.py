"""Reads the configured cluster into memory, for a rehearsal of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from nodeyard.bundle.model import GVR, ClusterState, Objects, ServedResource
from nodeyard.cli import cluster
from nodeyard.client.api import Client
from nodeyard.client.errors import Forbidden, NotFound
from nodeyard.rehearsal.twin import LEFT_OUT

_CONCURRENT: Final = 8


def read_live(kubeconfig: Path | None, context: str) -> tuple[ClusterState, str]:
    """Read every object that the account may list; return them with the name of the cluster. Raises a Failure."""
    config = cluster.load(kubeconfig, context)

    async def read() -> ClusterState:
        async with cluster.connect(config) as client:
            return await read_cluster(client)

    with cluster.one_line_errors(config):
        return asyncio.run(read()), f"live cluster {config.server}"


async def read_cluster(client: Client) -> ClusterState:
    catalog = await client.catalog()
    served = [ServedResource.of(known) for known in catalog.known]
    slots = asyncio.Semaphore(_CONCURRENT)
    first: dict[tuple[str, str], ServedResource] = {}
    for each in served:
        if "list" in each.verbs and (each.group, each.resource) not in LEFT_OUT:
            first.setdefault((each.group, each.resource), each)

    async def read(resource: ServedResource) -> tuple[GVR, Objects] | None:
        identity = {"apiVersion": resource.gvr.api_version, "kind": resource.kind}
        async with slots:
            try:
                page = await client.list(resource.known().resource)
            except (Forbidden, NotFound):
                return None
        return resource.gvr, Objects([msgspec.json.encode({**each, **identity}) for each in page.items])

    found = await asyncio.gather(*map(read, first.values()))
    objects = dict(each for each in found if each is not None)
    return ClusterState("", served, objects, await client.server_version())
