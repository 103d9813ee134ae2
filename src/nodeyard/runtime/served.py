"""Which resource a kind is written through: for the applier, which knows objects by apiVersion and kind.

Kinds that are watched are answered in the type their cache keeps, so that an answer can be laid over it as it is.
Others come from discovery; a kind that is not known is looked for once more, and the action that asked is retried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.errors import ClientError
from nodeyard.client.resources import Resource
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

# However many kinds are missing, the server is asked no more often than this.
PAUSE_SECONDS: Final = 5.0

_log = get_logger("served")


class Served:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._watched: dict[tuple[str, str], Resource[Any]] = {}
        self._catalog = Catalog(())
        self._missed = asyncio.Event()

    def watch(self, resources: Iterable[Resource[Any]]) -> None:
        for resource in resources:
            self._watched.setdefault((resource.api_version, resource.kind), resource)

    def find(self, api_version: str, kind: str) -> Resource[Any] | None:
        watched = self._watched.get((api_version, kind))
        if watched is not None:
            return watched
        known = self._catalog.by_kind(api_version, kind)
        if known is None:
            self._missed.set()
            return None
        return known.resource

    def find_other(self, group: str, kind: str) -> Resource[Any] | None:
        """The kind in whatever version the server has, the preferred one first."""
        found = (each.resource for each in self._catalog.known)
        return next((each for each in found if (each.group, each.kind) == (group, kind)), None)

    def learn(self, catalog: Catalog) -> None:
        """Somebody else has asked just now."""
        self._catalog = catalog

    def look_again(self) -> None:
        """The server may have other kinds than it had."""
        self._missed.set()

    async def discover(self) -> None:
        """Keeps what was known where the server does not answer."""
        self._missed.clear()
        try:
            self._catalog = await self._client.catalog()
        except (ClientError, msgspec.MsgspecError, LookupError) as error:
            # The last two: a document that is no discovery, from whatever stands in front of the server.
            _log.warning("keeping the known kinds", reason=str(error))

    async def run(self, *, at_once: bool = True) -> None:
        """Until cancelled. Where it does not begin at once it waits to be asked."""
        if at_once:
            self._missed.set()
        while True:
            await self._missed.wait()
            await self.discover()
            await self._clock.sleep(PAUSE_SECONDS)
