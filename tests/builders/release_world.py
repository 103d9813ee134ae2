"""Simulated Flux, kubelets and scheduler beside a blocking test: releases become workloads, workloads become pods."""

from __future__ import annotations

from typing import Any

from nodeyard.client import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.client.resources import NODES
from nodeyard.process.clock import SystemClock
from nodeyard.sim.world import STAGES, World
from nodeyard.testing.loop_thread import LoopThread


class ReleaseWorld(LoopThread):
    def __init__(self, api: Any) -> None:
        super().__init__("releases")
        self._config = load_kubeconfig([api.kubeconfig])
        self._nodes: list[str] = []
        self._client: Client
        self._world: World

    async def _start(self) -> None:
        clock = SystemClock()
        self._client = Client(HttpTransport(self._config, clock=clock))
        self._world = World(self._client, clock, stages=(*STAGES, "releases"))
        await self._world.__aenter__()

    async def _stop(self) -> None:
        for name in self._nodes:
            await self._client.delete(NODES, name)
        await self._world.__aexit__(None, None, None)
        await self._client.close()

    def add_nodes(self, count: int, **given: Any) -> list[str]:
        names: list[str] = self.run(self._world.add_nodes(count, **given))
        self._nodes += names
        return names

    @property
    def errors(self) -> Any:
        """Failed writes, except those that admission denied."""
        return self._world.errors
