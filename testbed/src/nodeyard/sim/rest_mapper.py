"""REST mapper that runs discovery when it meets an unknown kind, at most every two seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.errors import NotFound, Status
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock
from nodeyard.sim.stage_format import Kind

DISCOVERY_SECONDS: Final = 2.0

T = TypeVar("T")


class LazyRESTMapper:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._catalog = Catalog(())
        self._discovered_at: float | None = None
        self._lock = asyncio.Lock()

    async def find(self, kind: Kind) -> Resource[Object]:
        """Return the resource of a kind; raise NotFound if the server does not serve it."""
        known = await self._look_up(lambda catalog: catalog.by_kind(kind.api_version, kind.kind), str(kind))
        return known.resource

    async def find_preferred(self, group: str, kind: str) -> Resource[Object]:
        """Return the preferred version of a kind that a reference names without version; raise NotFound likewise."""
        return await self._look_up(lambda catalog: catalog.preferred(group, kind), f"{kind} of {group}")

    async def _look_up(self, find: Callable[[Catalog], T | None], name: str) -> T:
        if find(self._catalog) is None:
            async with self._lock:
                if find(self._catalog) is None:
                    await self._discover()
        found = find(self._catalog)
        if found is None:
            raise NotFound(Status(code=404, reason="NotFound", message=f"the server does not serve {name}"))
        return found

    async def _discover(self) -> None:
        now = self._clock.monotonic()
        if self._discovered_at is None or now - self._discovered_at >= DISCOVERY_SECONDS:
            self._catalog = await self._client.catalog()
            self._discovered_at = now
