"""One watched kind: its cache for as long as the process lives, its informer for as long as someone needs it.

While there is no contact with the server the informer rests; what was told stays, and it goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Protocol

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.resources import Resource
from nodeyard.process.clock import Clock
from nodeyard.watch.aggregates import Folding
from nodeyard.watch.cache import Cache
from nodeyard.watch.informer import Informer, Report
from nodeyard.watch.partial import metadata_only
from nodeyard.watch.sources import Chosen, Source


class Watched(Chosen, Protocol):
    """What a capability declares of a kind that it watches."""

    @property
    def keys(self) -> Callable[[Any | None, Any | None], Iterable[str]]: ...
    @property
    def indexes(self) -> Mapping[str, Callable[[Any], Iterable[str]]]: ...
    @property
    def aggregates(self) -> Sequence[Folding]: ...
    @property
    def needed(self) -> Callable[[Any], bool] | None: ...
    @property
    def optional(self) -> bool: ...


def full_name(resource: Resource[Any]) -> str:
    """What a kind is called in a view, whatever other groups have."""
    return f"{resource.kind}.{resource.group or 'core'}"


class Feed:
    """Shared by all who watch the same source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.resource = source.decoded
        self._versions = [replace(self.resource, version=each) for each in (self.resource.version, *source.older)]
        self.cache: Cache[Any] = Cache(self.resource.view, source.selection)
        self.needs: list[Callable[[], bool]] = []
        """Whether each of those who share it needs it now."""
        self.on_synced: list[Callable[[], None]] = []
        self.on_trouble: list[Callable[[], None]] = []
        self.is_optional = True
        """Until someone insists on the kind."""
        self.is_vital = False
        """Whether someone watches it who knew the kind beforehand. One that only users declared holds nothing up."""
        self.is_served: bool | None = None
        """Whether the server has the kind; None while that is not known. It matters only where it is optional."""
        self.informer: Informer[Any] | None = None
        self._task: asyncio.Task[None] | None = None
        self.is_kept = False
        """Whether the cache holds what the server told before the watch was put to rest."""

    @property
    def is_running(self) -> bool:
        return self.informer is not None

    @property
    def is_wanted(self) -> bool:
        return (bool(self.is_served) or not self.is_optional) and any(is_needed() for is_needed in self.needs)

    @property
    def is_synced(self) -> bool:
        """Whether the cache is what the server has: also empty, of an optional kind that is not served."""
        if self.informer is not None:
            return self.informer.is_synced
        return self.is_kept or (self.is_optional and self.is_served is False)

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to wait for; of a kind that only users declared also when it cannot be watched."""
        return self.is_synced or (not self.is_vital and bool(self.error))

    @property
    def error(self) -> str:
        """What last went wrong with the watch; empty while all is well."""
        return "" if self.informer is None else self.informer.error

    @property
    def breaks(self) -> int:
        """How often the watch that runs now has broken."""
        return 0 if self.informer is None else self.informer.restarts

    def serve(self, catalog: Catalog) -> None:
        """Note whether the server has the kind, and in which version and plural.

        A watch in another one is ended first: until then nothing is known of the kind, least of all that there is none.
        """
        best = next((found for each in self._versions if (found := _watched(catalog, each)) is not None), None)
        if best is not None and best != self.resource:
            if self.is_running:
                self.is_served = None
                return
            self.source = replace(self.source, resource=best.decoded_as(self.source.resource.view))
            self.resource = best
        self.is_served = best is not None

    def start(self, client: Client, clock: Clock, random: Random, on_missing: Callable[[], None]) -> None:
        reader = metadata_only(client) if self.source.metadata_only else client
        self.informer = Informer(
            reader,
            self.source,
            self.cache,
            clock,
            random,
            on_synced=lambda: _tell(self.on_synced),
            on_missing=on_missing,
            on_trouble=lambda: _tell(self.on_trouble),
        )
        if self.is_kept and self.cache.version:
            self.informer.resume()
        self.is_kept = False
        self._task = asyncio.create_task(self.informer.run(), name=f"informer {self.source}")

    async def rest(self) -> None:
        """End the watch and keep the objects: the next one goes on where this one ended."""
        self.is_kept = self.is_kept or (self.informer is not None and self.informer.is_synced)
        await self._end()

    async def stop(self) -> None:
        """End the watch and forget the objects. With it ends whatever was wrong: who waits for that is told."""
        was_waited_for = self.informer is not None and (bool(self.informer.error) or not self.informer.is_synced)
        self.is_kept = False
        await self._end()
        self.cache.clear()
        if was_waited_for:
            _tell(self.on_trouble)

    async def _end(self) -> None:
        task, self._task, self.informer = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def report(self) -> Report | None:
        """None while it does not run."""
        return None if self.informer is None else self.informer.report()


def _watched(catalog: Catalog, resource: Resource[Any]) -> Resource[Any] | None:
    """The resource as it can be watched; where its plural was not known, with that and the scope that it has."""
    known = catalog.by_kind(resource.api_version, resource.kind)
    if known is None or "watch" not in known.verbs:
        return None
    if resource.plural:
        return resource
    return replace(resource, plural=known.resource.plural, namespaced=known.resource.namespaced)


def _tell(those: Iterable[Callable[[], None]]) -> None:
    for told in those:
        told()
