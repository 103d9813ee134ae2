"""One watched kind: its cache for as long as the process lives, its informer for as long as someone needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Any, Protocol

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.resources import Resource
from nodeyard.process.clock import Clock
from nodeyard.watch.cache import Cache
from nodeyard.watch.informer import Informer, Report
from nodeyard.watch.partial import metadata_only
from nodeyard.watch.sources import Source


class Watched(Protocol):
    """What a capability declares of a kind that it watches."""

    @property
    def resource(self) -> Resource[Any]: ...
    @property
    def keys(self) -> Callable[[Any | None, Any | None], Iterable[str]]: ...
    @property
    def indexes(self) -> Mapping[str, Callable[[Any], Iterable[str]]]: ...
    @property
    def needed(self) -> Callable[[Any], bool] | None: ...
    @property
    def label_selector(self) -> str: ...
    @property
    def field_selector(self) -> str: ...
    @property
    def metadata_only(self) -> bool: ...
    @property
    def optional(self) -> bool: ...


class Feed:
    """Shared by all who watch the same source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.resource = source.decoded
        self.cache: Cache[Any] = Cache(self.resource.view, source.selection)
        self.needs: list[Callable[[], bool]] = []
        """Whether each of those who share it needs it now."""
        self.on_synced: list[Callable[[], None]] = []
        self.is_optional = True
        """Until someone insists on the kind."""
        self.is_served: bool | None = None
        """Whether the server has the kind; None while that is not known. It matters only where it is optional."""
        self.informer: Informer[Any] | None = None
        self._task: asyncio.Task[None] | None = None

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
        return self.is_optional and self.is_served is False

    def serve(self, catalog: Catalog) -> None:
        """Note whether the server has the kind."""
        known = catalog.by_kind(self.resource.api_version, self.resource.kind)
        self.is_served = known is not None and "watch" in known.verbs

    def start(self, client: Client, clock: Clock, random: Random, on_missing: Callable[[], None]) -> None:
        reader = metadata_only(client) if self.source.metadata_only else client
        self.informer = Informer(
            reader, self.source, self.cache, clock, random, on_synced=self._tell_synced, on_missing=on_missing
        )
        self._task = asyncio.create_task(self.informer.run(), name=f"informer {self.source}")

    async def stop(self) -> None:
        """End the watch and forget the objects."""
        task, self._task, self.informer = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.cache.clear()

    def report(self) -> Report | None:
        """None while it does not run."""
        return None if self.informer is None else self.informer.report()

    def _tell_synced(self) -> None:
        for told in self.on_synced:
            told()
