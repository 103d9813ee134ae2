"""REST mapper that runs discovery when it meets an unknown kind, at most every two seconds."""

from __future__ import annotations

import asyncio
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound, Status
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock
from nodeyard.sim.stage_format import Kind

DISCOVERY_SECONDS: Final = 2.0


class LazyRESTMapper:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[Kind, Resource[Object]] = {}
        self._preferred: dict[tuple[str, str], Resource[Object]] = {}
        self._discovered_at: float | None = None
        self._lock = asyncio.Lock()

    async def find(self, kind: Kind) -> Resource[Object]:
        """Return the resource of a kind; raise NotFound if the server does not serve it."""
        if kind not in self._known:
            async with self._lock:
                await self._discover(kind)
        found = self._known.get(kind)
        if found is None:
            raise NotFound(Status(code=404, reason="NotFound", message=f"the server does not serve {kind}"))
        return found

    async def find_preferred(self, group: str, kind: str) -> Resource[Object]:
        """Return the preferred version of a kind that a reference names without version; raise NotFound likewise."""
        if (group, kind) not in self._preferred:
            async with self._lock:
                await self._discover(Kind(group, kind))
        found = self._preferred.get((group, kind))
        if found is None:
            raise NotFound(Status(code=404, reason="NotFound", message=f"the server does not serve {kind} of {group}"))
        return found

    async def _discover(self, kind: Kind) -> None:
        now = self._clock.monotonic()
        is_fresh = self._discovered_at is not None and now - self._discovered_at < DISCOVERY_SECONDS
        if kind in self._known or is_fresh:
            return
        catalog = await self._client.catalog()
        self._discovered_at = now
        for one in catalog.known:
            self._known[Kind(one.resource.api_version, one.resource.kind)] = one.resource
            self._preferred.setdefault((one.resource.group, one.resource.kind), one.resource)
