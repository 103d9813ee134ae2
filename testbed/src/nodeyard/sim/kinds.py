"""From a kind to its resource, by discovery; a kind that is not there yet is asked for again."""

from __future__ import annotations

import asyncio
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound, Status
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock
from nodeyard.sim.stage_format import Kind

ASK_AGAIN_SECONDS: Final = 2.0


class Kinds:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[Kind, Resource[Object]] = {}
        self._preferred: dict[tuple[str, str], Resource[Object]] = {}
        self._asked: float | None = None
        self._asking = asyncio.Lock()

    async def resource(self, kind: Kind) -> Resource[Object]:
        """Raises NotFound when the server does not have it."""
        if kind not in self._known:
            async with self._asking:
                await self._discover(kind)
        found = self._known.get(kind)
        if found is None:
            raise NotFound(Status(code=404, reason="NotFound", message=f"the server does not have {kind}"))
        return found

    async def referred(self, group: str, kind: str) -> Resource[Object]:
        """The preferred version of a kind that a reference names without one; raises NotFound like `resource`."""
        if (group, kind) not in self._preferred:
            async with self._asking:
                await self._discover(Kind(group, kind))
        found = self._preferred.get((group, kind))
        if found is None:
            raise NotFound(Status(code=404, reason="NotFound", message=f"the server does not have {kind} of {group}"))
        return found

    async def _discover(self, kind: Kind) -> None:
        now = self._clock.monotonic()
        is_fresh = self._asked is not None and now - self._asked < ASK_AGAIN_SECONDS
        if kind in self._known or is_fresh:
            return
        catalog = await self._client.catalog()
        self._asked = now
        for one in catalog.known:
            self._known[Kind(one.resource.api_version, one.resource.kind)] = one.resource
            self._preferred.setdefault((one.resource.group, one.resource.kind), one.resource)
