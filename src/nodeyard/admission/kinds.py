"""Maps a kind to its resource, also for a CRD that was installed a moment ago.

Cached discovery is used first. A kind that it lacks is looked up by one discovery request for its group and version;
concurrent misses of the same version share that request. If the server no longer serves the version, the kind is read
through another one. Misses are not cached, but requests for the same version are at least half a second apart, so
invented kinds cannot flood the server with discovery requests.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from typing import Any, Final, Protocol

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog, discover_version
from nodeyard.client.resources import Resource
from nodeyard.kube.objects import PartialObject
from nodeyard.process.clock import Clock

MIN_INTERVAL_SECONDS: Final = 0.5
IN_FLIGHT: Final = 4
MAX_REMEMBERED: Final = 256

# References in unvalidated objects may hold any text; only these become part of a URL.
_VERSION: Final = re.compile(r"(?:([a-z0-9.-]{1,253})/)?([a-z0-9]{1,63})", re.ASCII)


class CachedDiscovery(Protocol):
    """The last result of discovery."""

    def find(self, api_version: str, kind: str) -> Resource[Any] | None: ...

    def find_other(self, group: str, kind: str) -> Resource[Any] | None:
        """Find the kind in any served version."""


class Kinds:
    def __init__(self, client: Client, known: CachedDiscovery, clock: Clock) -> None:
        self._client = client
        self._known = known
        self._clock = clock
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._pending: dict[str, asyncio.Task[Catalog]] = {}
        """Requests by version that are not sent yet and can be shared."""
        self._tasks: set[asyncio.Task[Catalog]] = set()
        self._asked_at: OrderedDict[str, float] = OrderedDict()

    async def find(self, api_version: str, kind: str) -> Resource[PartialObject] | None:
        """Find the resource of a kind; None if it is not served. Raises ClientError if the server cannot be asked."""
        if not _VERSION.fullmatch(api_version):
            return None
        known = self._known.find(api_version, kind)
        return await self.rediscover(api_version, kind) if known is None else known.decoded_as(PartialObject)

    async def rediscover(self, api_version: str, kind: str) -> Resource[PartialObject] | None:
        """Find the resource of a kind by a new discovery request, whatever the cache has."""
        task = self._pending.get(api_version)
        if task is None:
            task = asyncio.create_task(self._discover(api_version), name="discover a version")
            self._pending[api_version] = task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        # The task is shared: cancelling one waiter must not cancel the request.
        found = (await asyncio.shield(task)).by_kind(api_version, kind)
        if found is not None:
            return found.resource.decoded_as(PartialObject)
        other = self._known.find_other(api_version.rpartition("/")[0], kind)
        return None if other is None or other.api_version == api_version else other.decoded_as(PartialObject)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _discover(self, api_version: str) -> Catalog:
        """Send the request. Only earlier callers share it: its answer may be older than a later caller's CRD."""
        group, _, version = api_version.rpartition("/")
        try:
            wait = self._asked_at.get(api_version, 0.0) + MIN_INTERVAL_SECONDS - self._clock.monotonic()
            if api_version in self._asked_at and wait > 0:
                await self._clock.sleep(wait)
            self._record(api_version)
        finally:
            del self._pending[api_version]
        async with self._slots:
            return await discover_version(self._client.transport, group, version)

    def _record(self, api_version: str) -> None:
        self._asked_at[api_version] = self._clock.monotonic()
        self._asked_at.move_to_end(api_version)
        if len(self._asked_at) > MAX_REMEMBERED:
            self._asked_at.popitem(last=False)
