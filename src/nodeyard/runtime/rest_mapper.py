"""The REST mapper: the resource of an apiVersion and kind, for the applier.

A watched kind maps to the type that its cache keeps, so that a response can overlay the cache. Other kinds come from
discovery. A lookup of an unknown kind triggers discovery, and the action that needs it is retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.errors import ClientError
from nodeyard.client.outages import OUTAGES
from nodeyard.client.resources import Resource
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

# Discovery runs at most this often, however many kinds are missing.
DISCOVERY_SECONDS: Final = 5.0

_log = get_logger("discovery")


class RESTMapper:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._watched: dict[tuple[str, str], Resource[Any]] = {}
        self._catalog = Catalog(())
        self._is_stale = asyncio.Event()

    def watch(self, resources: Iterable[Resource[Any]]) -> None:
        for resource in resources:
            self._watched.setdefault((resource.api_version, resource.kind), resource)

    def find(self, api_version: str, kind: str) -> Resource[Any] | None:
        watched = self._watched.get((api_version, kind))
        if watched is not None:
            return watched
        known = self._catalog.by_kind(api_version, kind)
        if known is None:
            self._is_stale.set()
            return None
        return known.resource

    def find_other(self, group: str, kind: str) -> Resource[Any] | None:
        """Return the kind in any served version, the preferred one first."""
        found = (each.resource for each in self._catalog.known)
        return next((each for each in found if (each.group, each.kind) == (group, kind)), None)

    def learn(self, catalog: Catalog) -> None:
        """Take a catalog that another component has just discovered."""
        self._catalog = catalog

    def look_again(self) -> None:
        """Mark the catalog as stale: the server may serve other kinds now."""
        self._is_stale.set()

    async def discover(self) -> None:
        """Run discovery; keep the known catalog if it fails."""
        self._is_stale.clear()
        try:
            self._catalog = await self._client.catalog()
        except (ClientError, msgspec.MsgspecError, LookupError) as error:
            # MsgspecError, LookupError: a document that is no discovery, from a proxy in front of the server.
            OUTAGES.tell(_log, "discovery failed", "", error)

    async def run(self, *, at_once: bool = True) -> None:
        """Run discovery whenever the catalog is stale, until cancelled; first at once if `at_once`."""
        if at_once:
            self._is_stale.set()
        while True:
            await self._is_stale.wait()
            await self.discover()
            await self._clock.sleep(DISCOVERY_SECONDS)
