"""RESTMapper: the resource of an apiVersion and kind on one server, from cached discovery.

    InformerFactory ──refresh()──▶ RESTMapper ──▶ discovery, on demand
    applier ──find()──▶ cache                     a miss makes the next discovery due soon
    admission ──look_up()──▶ cache, then one request for the group and version

There is one RESTMapper per server. A registered kind maps to the type that its cache keeps, so that a response can
overlay the cache. Discovery runs after a miss, after `invalidate` (a watch got a 404, a CRD or an APIService changed),
and for who follows what is served: every DISCOVERY_SECONDS while a change is expected (`expects_changes`), else every
SETTLED_SECONDS. The last catalog stays while discovery fails.

`look_up` also finds a kind whose CRD was installed a moment ago. Concurrent misses of the same version share one
request. If the server no longer serves the version, the kind is found in another one. Misses are not cached, but
requests for the same version are at least MIN_INTERVAL_SECONDS apart, so invented kinds cannot flood the server.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog, discover_version
from nodeyard.client.errors import ClientError
from nodeyard.client.outages import OUTAGES
from nodeyard.client.resources import Resource
from nodeyard.client.transport import Transport
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

DISCOVERY_SECONDS: Final = 30.0
SETTLED_SECONDS: Final = 600.0
"""The interval while nothing is missing: no request would fail for what discovery finds, such as a new version."""
DISCOVERY_RETRY_SECONDS: Final = 2.0
# Discovery after a miss runs at most this often, however many kinds are missing.
MISS_SECONDS: Final = 5.0
# Delays of repeated discovery after `invalidate`: a server publishes a new kind a moment after it is defined.
FOLLOW_UP_SECONDS: Final = (0.5, 1.0, 2.0, 4.0)
MIN_INTERVAL_SECONDS: Final = 0.5
IN_FLIGHT: Final = 4
"""Lookups of single versions at once: references in unvalidated objects may name many."""
MAX_REMEMBERED: Final = 256

# References in unvalidated objects may hold any text; only these become part of a URL.
_VERSION: Final = re.compile(r"(?:([a-z0-9.-]{1,253})/)?([a-z0-9]{1,63})", re.ASCII)

_log = get_logger("discovery")


class RESTMapper:
    def __init__(self, client: Client, clock: Clock, on_stale: Callable[[], None] = lambda: None) -> None:
        """`on_stale` is called when discovery becomes due before its time."""
        self._client = client
        self._clock = clock
        self._on_stale = on_stale
        self._registered: dict[tuple[str, str], Resource[Any]] = {}
        self.catalog: Catalog | None = None
        """The last result of discovery; None before the first and after `forget`."""
        self._asked_at = float("-inf")
        self._due_at = float("inf")
        self._is_followed = False
        self.expects_changes = True
        """True while a kind is missing, or something else may change that only discovery shows."""
        self._follow_ups: list[float] = []
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._pending: dict[str, asyncio.Task[Catalog]] = {}
        """Lookups by version that are not sent yet and can be shared."""
        self._tasks: set[asyncio.Task[Catalog]] = set()
        self._looked_up_at: OrderedDict[str, float] = OrderedDict()

    def register(self, resources: Iterable[Resource[Any]]) -> None:
        """Map these kinds to these resources, whatever discovery says."""
        for resource in resources:
            self._registered.setdefault((resource.api_version, resource.kind), resource)

    # from the cache

    def find(self, api_version: str, kind: str) -> Resource[Any] | None:
        """Return the resource of a kind. A miss makes discovery due: the action that needs the kind is retried."""
        registered = self._registered.get((api_version, kind))
        if registered is not None:
            return registered
        known = None if self.catalog is None else self.catalog.by_kind(api_version, kind)
        if known is not None:
            return known.resource
        due_at = self._asked_at + MISS_SECONDS
        if due_at < self._due_at:
            self._due_at = due_at
            self._on_stale()
        return None

    def find_any_version(self, group: str, kind: str) -> Resource[Any] | None:
        """Return the kind in its preferred served version."""
        return None if self.catalog is None else self.catalog.preferred(group, kind)

    # discovery

    @property
    def due_in(self) -> float:
        """The seconds until discovery is due."""
        due_at = self._due_at
        if self._is_followed:
            due_at = min(due_at, self._asked_at + (DISCOVERY_SECONDS if self.expects_changes else SETTLED_SECONDS))
        return max(0.0, due_at - self._clock.monotonic())

    def follow(self) -> None:
        """Repeat discovery from now on."""
        if not self._is_followed:
            self._is_followed, self._due_at = True, float("-inf")
            self._on_stale()

    def invalidate(self) -> None:
        """Make discovery due now and a few times soon after: a kind may have been added or removed."""
        self._due_at, self._follow_ups = float("-inf"), [*FOLLOW_UP_SECONDS]
        self._on_stale()

    def forget(self) -> None:
        """Drop the catalog, because the server is another one now."""
        self.catalog = None

    async def refresh(self) -> bool:
        """Run discovery if it is due; return True if there is a new catalog."""
        if self.due_in > 0:
            return False
        # Reset before the request: `find` and `invalidate` may make the next discovery due meanwhile.
        self._asked_at, self._due_at = self._clock.monotonic(), float("inf")
        try:
            self.catalog = await self._client.catalog()
        except (ClientError, msgspec.MsgspecError, LookupError) as error:
            # MsgspecError, LookupError: a document that is no discovery, from a proxy in front of the server.
            OUTAGES.log(_log, "discovery failed", "", error)
            self._schedule(DISCOVERY_RETRY_SECONDS)
            return False
        if self._follow_ups:
            wait, *self._follow_ups = self._follow_ups
            self._schedule(wait)
        return True

    def _schedule(self, seconds: float) -> None:
        self._due_at = min(self._due_at, self._clock.monotonic() + seconds)

    # one version

    async def look_up(self, api_version: str, kind: str, transport: Transport) -> Resource[Any] | None:
        """Return the resource of a kind, also of a new one; None if it is not served. Raises ClientError.

        `transport` sends the request, so that it need not queue behind writes.
        """
        if not _VERSION.fullmatch(api_version):
            return None
        return self.find(api_version, kind) or await self.look_up_again(api_version, kind, transport)

    async def look_up_again(self, api_version: str, kind: str, transport: Transport) -> Resource[Any] | None:
        """Return the resource of a kind by a new discovery request, whatever the cache has."""
        task = self._pending.get(api_version)
        if task is None:
            task = asyncio.create_task(self._discover_version(api_version, transport), name="discover a version")
            self._pending[api_version] = task
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        # The task is shared: cancelling one waiter must not cancel the request.
        found = (await asyncio.shield(task)).by_kind(api_version, kind)
        if found is not None:
            return found.resource
        other = self.find_any_version(api_version.rpartition("/")[0], kind)
        return None if other is None or other.api_version == api_version else other

    async def close(self) -> None:
        """Cancel the lookups."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _discover_version(self, api_version: str, transport: Transport) -> Catalog:
        """Send the request. Only earlier callers share it: its answer may be older than a later caller's CRD."""
        group, _, version = api_version.rpartition("/")
        try:
            wait = self._looked_up_at.get(api_version, float("-inf")) + MIN_INTERVAL_SECONDS - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
            self._looked_up_at[api_version] = self._clock.monotonic()
            self._looked_up_at.move_to_end(api_version)
            if len(self._looked_up_at) > MAX_REMEMBERED:
                self._looked_up_at.popitem(last=False)
        finally:
            del self._pending[api_version]
        async with self._slots:
            return await discover_version(transport, group, version)
