"""Watches a collection and notes when each object first meets a condition."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from nodeyard.client.bodies import LineFramer

TIMEOUT_SECONDS = 90.0


class ManagedFields(msgspec.Struct):
    manager: str = ""


class ObservedMetadata(msgspec.Struct, rename="camel"):
    """The metadata that conditions read."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}
    managed_fields: list[ManagedFields] = []


class _Object(msgspec.Struct):
    metadata: ObservedMetadata


class _Event(msgspec.Struct):
    object: _Object


class Observer:
    """The time at which each object first met the condition, by namespace and name."""

    def __init__(self) -> None:
        self.first_seen: dict[str, float] = {}
        self._changed = asyncio.Event()

    def see(self, name: str, at: float) -> None:
        self.first_seen.setdefault(name, at)
        self._changed.set()

    async def wait_for(self, count: int, seconds: float = TIMEOUT_SECONDS) -> float:
        """Wait for this many objects and return the time of the last. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while len(self.first_seen) < count:
                self._changed.clear()
                await self._changed.wait()
        return max(self.first_seen.values())


@asynccontextmanager
async def observe(
    session: aiohttp.ClientSession, path: str, is_wanted: Callable[[ObservedMetadata], bool]
) -> AsyncIterator[Observer]:
    """Watch whole objects, as a controller does. A watch error ends the benchmark."""
    found = Observer()
    async with session.get(path, params={"limit": "1"}) as response:
        response.raise_for_status()
        version = msgspec.json.decode(await response.read(), type=_Object).metadata.resource_version
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(_watch(session, path, version, found, is_wanted))
        yield found
        task.cancel()


async def _watch(
    session: aiohttp.ClientSession,
    path: str,
    version: str,
    found: Observer,
    is_wanted: Callable[[ObservedMetadata], bool],
) -> None:
    decode = msgspec.json.Decoder(_Event).decode
    while True:
        # A busy server closes slow watches; the next one resumes at the last version.
        query = {"watch": "true", "resourceVersion": version}
        async with session.get(path, params=query, timeout=_ENDLESS) as response:
            response.raise_for_status()
            framer = LineFramer()
            async for chunk in response.content.iter_any():
                at = time.perf_counter()
                for line in framer.feed(chunk):
                    seen = decode(line).object.metadata
                    version = seen.resource_version
                    if is_wanted(seen):
                        found.see(f"{seen.namespace}/{seen.name}".lstrip("/"), at)


_ENDLESS = aiohttp.ClientTimeout(total=None)
