"""Reads the configured cluster into memory, as `nodeyard gather` does, for a rehearsal of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.gather import Gathered, gather
from nodeyard.cli import cluster


def read_live(kubeconfig: Path | None, context: str) -> tuple[Gathered, str]:
    """Gather the cluster; return it with its name. Raises a Failure."""
    config = cluster.load(kubeconfig, context)

    async def read() -> Gathered:
        async with cluster.connect(config) as client:
            return await gather(client, CAPABILITIES)

    with cluster.one_line_errors(config):
        return asyncio.run(read()), f"live cluster {config.server}"
