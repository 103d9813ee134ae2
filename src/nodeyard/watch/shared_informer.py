"""Shared informer: one cache for the life of the process, and a reflector that runs while a capability needs it.

Watches with equal keys (resource, selectors, namespace) share one informer. While the server is out of contact the
reflector is paused. The cache keeps its objects, and the next watch continues from its resourceVersion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, Protocol

from nodeyard.client.api import Client
from nodeyard.client.discovery import Catalog
from nodeyard.client.metadata_only import metadata_only
from nodeyard.client.resources import Resource, view_kind
from nodeyard.process.clock import Clock
from nodeyard.watch.cache import Cache
from nodeyard.watch.indexes import Aggregate
from nodeyard.watch.reflector import InformerKey, Reflector, Report

# A server start or a single failed request is over by then; a missing kind or permission is not.
REFUSED_SECONDS: Final = 30.0


class InformerSpec(Protocol):
    """The part of a watch declaration that identifies its informer."""

    @property
    def resource(self) -> Resource[Any]: ...
    @property
    def label_selector(self) -> str: ...
    @property
    def field_selector(self) -> str: ...
    @property
    def metadata_only(self) -> bool: ...
    @property
    def fallback_versions(self) -> tuple[str, ...]: ...
    @property
    def namespace(self) -> str: ...


def key_of(watch: InformerSpec) -> InformerKey:
    return InformerKey(
        watch.resource,
        watch.label_selector,
        watch.field_selector,
        watch.metadata_only,
        watch.fallback_versions,
        watch.namespace,
    )


def in_namespace(kind: str, namespace: str) -> str:
    """Return the name in a view of a kind that is watched in one namespace only: `Secret@openstack`."""
    return f"{kind}@{namespace}" if namespace else kind


class WatchSpec(InformerSpec, Protocol):
    """Declaration of a watch by a capability."""

    @property
    def keys(self) -> Callable[[Any | None, Any | None], Iterable[str]]: ...
    @property
    def indexes(self) -> Mapping[str, Callable[[Any], Iterable[str]]]: ...
    @property
    def aggregates(self) -> Sequence[Aggregate]: ...
    @property
    def identity(self) -> str:
        """Identifies what the indexes and aggregates compute; they are rebuilt when it changes."""

    @property
    def needed(self) -> Callable[[Any], bool] | None: ...
    @property
    def optional(self) -> bool: ...
    @property
    def min_interval(self) -> float: ...


def full_name(resource: Resource[Any]) -> str:
    """Return the name of a kind in a view, with its group."""
    return view_kind(resource.api_version, resource.kind)


class SharedInformer:
    """Shared by all watches with the same key."""

    def __init__(self, key: InformerKey) -> None:
        self.key = key
        self.resource = key.decoded
        self._versions = [
            replace(self.resource, version=each) for each in (self.resource.version, *key.fallback_versions)
        ]
        self.cache: Cache[Any] = Cache(self.resource.view, key.selection)
        self.needs: list[Callable[[], bool]] = []
        """One predicate per subscription: True if it needs the informer now."""
        self.on_synced: list[Callable[[], None]] = []
        self.on_watch_error: list[Callable[[], None]] = []
        self.is_optional = True
        """True unless a subscription requires the kind."""
        self.is_static = False
        """True if a capability registered the kind statically. A kind that only users declared blocks nothing."""
        self.is_served: bool | None = None
        """True if the server serves the kind; None while unknown. Used only for optional kinds."""
        self.reflector: Reflector[Any] | None = None
        self._task: asyncio.Task[None] | None = None
        self.is_kept = False
        """True while the watch is paused and the cache holds its objects."""

    @property
    def is_running(self) -> bool:
        return self.reflector is not None

    @property
    def is_wanted(self) -> bool:
        return (bool(self.is_served) or not self.is_optional) and any(is_needed() for is_needed in self.needs)

    @property
    def is_missing(self) -> bool:
        """True if the server does not serve the kind, or not in the version that is wanted most."""
        return self.is_served is False or self.resource.version != self._versions[0].version

    @property
    def covers_all(self) -> bool:
        """True if all objects of the kind are watched."""
        return self.key.selection is None and not self.key.namespace

    @property
    def is_synced(self) -> bool:
        """True if the cache matches the server; it is empty for an optional kind that is not served."""
        if self.reflector is not None:
            return self.reflector.is_synced
        return self.is_kept or (self.is_optional and self.is_served is False)

    @property
    def is_settled(self) -> bool:
        """True if nothing is to be waited for: synced, or a kind that only users declared and cannot be watched."""
        return self.is_synced or (not self.is_static and bool(self.error))

    @property
    def is_broken(self) -> bool:
        """True if the watch has failed or been silent for so long that nothing should wait for it."""
        reflector = self.reflector
        if reflector is None:
            return False
        is_refused = not reflector.is_synced and bool(reflector.error) and reflector.silence > REFUSED_SECONDS
        return is_refused or reflector.is_stalled

    @property
    def error(self) -> str:
        """The current failure of the watch; empty while it works."""
        return "" if self.reflector is None else self.reflector.error

    def staleness(self, seconds: float = 0.0) -> str:
        """Return why the cache has been stale for at least this many seconds; empty if it is not."""
        return "" if self.reflector is None else self.reflector.staleness(seconds)

    @property
    def restarts(self) -> int:
        """The number of failures of the current watch."""
        return 0 if self.reflector is None else self.reflector.restarts

    def serve(self, catalog: Catalog) -> None:
        """Record whether the server serves the kind, and in which version and plural.

        A running watch in another version is stopped first. Until then `is_served` is None: the kind is unknown, not
        missing.
        """
        best = next((found for each in self._versions if (found := _resolve(catalog, each)) is not None), None)
        if best is not None and best != self.resource:
            if self.is_running:
                self.is_served = None
                return
            self.key = replace(self.key, resource=best.decoded_as(self.key.resource.view))
            self.resource = best
        self.is_served = best is not None

    def start(self, client: Client, clock: Clock, random: Random, on_missing: Callable[[], None]) -> None:
        reader = metadata_only(client) if self.key.metadata_only else client
        self.reflector = Reflector(
            reader,
            self.key,
            self.cache,
            clock,
            random,
            on_synced=lambda: _notify(self.on_synced),
            on_missing=on_missing,
            on_watch_error=lambda: _notify(self.on_watch_error),
        )
        if self.is_kept and self.cache.version:
            self.reflector.resume()
        self.is_kept = False
        self._task = asyncio.create_task(self.reflector.run(), name=f"informer {self.key}")

    async def pause(self) -> None:
        """Pause: end the watch and keep the objects. The next watch continues from the last resourceVersion."""
        self.is_kept = self.is_kept or (self.reflector is not None and self.reflector.is_synced)
        await self._end()

    async def stop(self) -> None:
        """End the watch and clear the cache. A failure ends with it, so `on_watch_error` is called."""
        was_waited_for = self.reflector is not None and (bool(self.reflector.error) or not self.reflector.is_synced)
        self.is_kept = False
        await self._end()
        self.cache.clear()
        if was_waited_for:
            _notify(self.on_watch_error)

    async def _end(self) -> None:
        task, self._task, self.reflector = self._task, None, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def report(self) -> Report | None:
        """Return the health of the watch; None while it does not run."""
        return None if self.reflector is None else self.reflector.report()


def _resolve(catalog: Catalog, resource: Resource[Any]) -> Resource[Any] | None:
    """Return the resource with plural and scope from discovery; None if it cannot be watched."""
    known = catalog.by_kind(resource.api_version, resource.kind)
    if known is None or "watch" not in known.verbs:
        return None
    if resource.plural:
        return resource
    return replace(resource, plural=known.resource.plural, namespaced=known.resource.namespaced)


def _notify(callbacks: Iterable[Callable[[], None]]) -> None:
    for callback in callbacks:
        callback()
