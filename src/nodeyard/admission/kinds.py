"""Which resource the objects of a kind are read through, also of a kind that was installed a moment ago.

What discovery said last is gone by first. A kind that is not in it is asked for, by one small request for its version
of its group; many who miss kinds of the same version at once share one. A version that the server does not have any
more is no obstacle: the same objects are there in another. Nothing is remembered of a miss but when it
was: whoever comes soon after waits for a moment and is then told anew, so that a server is not asked more often than
that about kinds which somebody made up.
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

PAUSE_SECONDS: Final = 0.5
IN_FLIGHT: Final = 4
MOST_REMEMBERED: Final = 256

# What a URL can be made of; the references of objects that are not yet checked may say anything.
_VERSION: Final = re.compile(r"(?:([a-z0-9.-]{1,253})/)?([a-z0-9]{1,63})", re.ASCII)


class Known(Protocol):
    """What discovery said last."""

    def find(self, api_version: str, kind: str) -> Resource[Any] | None: ...

    def find_other(self, group: str, kind: str) -> Resource[Any] | None:
        """The kind in whatever version the server has."""


class Kinds:
    def __init__(self, client: Client, known: Known, clock: Clock) -> None:
        self._client = client
        self._known = known
        self._clock = clock
        self._turn = asyncio.Semaphore(IN_FLIGHT)
        self._asking: dict[str, asyncio.Task[Catalog]] = {}
        """Not sent yet: who comes now may share it."""
        self._tasks: set[asyncio.Task[Catalog]] = set()
        self._asked_at: OrderedDict[str, float] = OrderedDict()

    async def find(self, api_version: str, kind: str) -> Resource[PartialObject] | None:
        """None where the server does not serve it. Raises ClientError where it cannot be asked."""
        if not _VERSION.fullmatch(api_version):
            return None
        known = self._known.find(api_version, kind)
        return await self.find_anew(api_version, kind) if known is None else known.decoded_as(PartialObject)

    async def find_anew(self, api_version: str, kind: str) -> Resource[PartialObject] | None:
        """The same, whatever was known of it."""
        asking = self._asking.get(api_version)
        if asking is None:
            asking = self._asking[api_version] = asyncio.create_task(self._ask(api_version), name="discover a version")
            self._tasks.add(asking)
            asking.add_done_callback(self._tasks.discard)
        # Others wait for it too: who gives up does not take it along.
        found = (await asyncio.shield(asking)).by_kind(api_version, kind)
        if found is not None:
            return found.resource.decoded_as(PartialObject)
        other = self._known.find_other(api_version.rpartition("/")[0], kind)
        return None if other is None or other.api_version == api_version else other.decoded_as(PartialObject)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, api_version: str) -> Catalog:
        """Those who come while it waits for its turn share it; those who come later would be told too little."""
        group, _, version = api_version.rpartition("/")
        try:
            wait = self._asked_at.get(api_version, 0.0) + PAUSE_SECONDS - self._clock.monotonic()
            if api_version in self._asked_at and wait > 0:
                await self._clock.sleep(wait)
            self._note(api_version)
        finally:
            del self._asking[api_version]
        async with self._turn:
            return await discover_version(self._client.transport, group, version)

    def _note(self, api_version: str) -> None:
        self._asked_at[api_version] = self._clock.monotonic()
        self._asked_at.move_to_end(api_version)
        if len(self._asked_at) > MOST_REMEMBERED:
            self._asked_at.popitem(last=False)
