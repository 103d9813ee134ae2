"""Another watcher: when each object was first seen to be as it shall be, whoever made it so."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from nodeyard.client.bodies import LineFramer

SECONDS = 90.0


class Owner(msgspec.Struct):
    manager: str = ""


class Seen(msgspec.Struct, rename="camel"):
    """What a watcher looks at."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    managed_fields: list[Owner] = []


class _Object(msgspec.Struct):
    metadata: Seen


class _Event(msgspec.Struct):
    object: _Object


class Sightings:
    """When each was first seen."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}
        self._news = asyncio.Event()

    def see(self, name: str, at: float) -> None:
        self.seen.setdefault(name, at)
        self._news.set()

    async def reach(self, count: int, seconds: float = SECONDS) -> float:
        """When the last of this many was seen. TimeoutError when they are not there in time."""
        async with asyncio.timeout(seconds):
            while len(self.seen) < count:
                self._news.clear()
                await self._news.wait()
        return max(self.seen.values())


@asynccontextmanager
async def sightings(
    opened: aiohttp.ClientSession, path: str, is_wanted: Callable[[Seen], bool]
) -> AsyncIterator[Sightings]:
    """Watches whole objects, as a controller does. A watch that breaks ends the benchmark."""
    found = Sightings()
    async with opened.get(path, params={"limit": "1"}) as answer:
        answer.raise_for_status()
        version = msgspec.json.decode(await answer.read(), type=_Object).metadata.resource_version
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(_watch(opened, path, version, found, is_wanted))
        yield found
        task.cancel()


async def _watch(
    opened: aiohttp.ClientSession, path: str, version: str, found: Sightings, is_wanted: Callable[[Seen], bool]
) -> None:
    decode = msgspec.json.Decoder(_Event).decode
    while True:
        # A busy server ends watches that it cannot serve in time; the next goes on where it ended.
        query = {"watch": "true", "resourceVersion": version}
        async with opened.get(path, params=query, timeout=_ENDLESS) as answer:
            answer.raise_for_status()
            framer = LineFramer()
            async for chunk in answer.content.iter_any():
                at = time.perf_counter()
                for line in framer.feed(chunk):
                    seen = decode(line).object.metadata
                    version = seen.resource_version
                    if is_wanted(seen):
                        found.see(f"{seen.namespace}/{seen.name}".lstrip("/"), at)


_ENDLESS = aiohttp.ClientTimeout(total=None)
