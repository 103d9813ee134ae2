"""The base of all controllers: events add keys to a queue, and one worker reconciles one key after the other.

`observe` is called within a commit and does constant work. `reconcile` reads the store, acts through the API as the
controller's own user, and is idempotent. A key that fails is logged once and retried with backoff; other keys are not
affected.
"""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from datetime import datetime
from typing import ClassVar, Generic, Protocol, TypeVar
from urllib.parse import quote

import structlog

from nodeyard.apiserver.controllers.workqueue import WorkQueue
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.apiserver.store import Event, Key, Store
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.users import AUTHENTICATED, ServiceAccountName
from nodeyard.kube.json import Json
from nodeyard.process.clock import Clock

K = TypeVar("K", bound=Hashable)

MERGE_PATCH = "application/merge-patch+json"
_FIELD_MANAGER = "kube-controller-manager"
_BACKOFF_FIRST = 0.05
_BACKOFF_LONGEST = 60.0
_SHORTEST_DELAY = 0.01
_BATCH = 64
"""Keys after which the worker yields to the event loop: an in-process call may never await."""

log = structlog.get_logger(__name__)


class Cluster(Protocol):
    """Parts of the server that a controller needs."""

    store: Store
    registry: Registry
    clock: Clock
    silent_nodes: str
    """Annotation of nodes that send no heartbeats and live nevertheless."""

    async def call(
        self, method: str, url: str, body: Json = None, *, user: User = ..., content_type: str = ...
    ) -> Json: ...


def service_account(name: str) -> User:
    """The user of one of kube-controller-manager's controllers."""
    account = ServiceAccountName("kube-system", name)
    return User(account.username, (*account.groups, AUTHENTICATED))


class Controller(ABC, Generic[K]):
    """Base class of controllers; `K` is the type of keys."""

    name: ClassVar[str]
    user: ClassVar[User]
    watches: ClassVar[frozenset[GroupResource] | None] = None
    """The resources whose events it gets; None for all."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.store = cluster.store
        self.clock = cluster.clock
        self.queue: WorkQueue[K] = WorkQueue(cluster.clock)
        self._failures: dict[K, int] = {}

    @abstractmethod
    def observe(self, resource: GroupResource, event: Event) -> None:
        """Queue the keys of an event. It is called within the commit and must not write."""

    @abstractmethod
    async def reconcile(self, key: K) -> float | None:
        """Reconcile one key; return the seconds after which to requeue it, if at all."""

    def seed(self) -> None:
        """Observe all existing objects."""
        resources: Iterable[GroupResource] = self.store.resources()
        for resource in resources:
            if self.watches is None or resource in self.watches:
                for stored in list(self.store.list(resource)):
                    self.observe(resource, Event("ADDED", stored.revision, stored, None))

    async def run(self) -> None:
        """Reconcile keys until cancelled."""
        for number in itertools.count(1):
            key = await self.queue.get()
            try:
                delay = await self._attempt(key)
            except Exception as error:
                self._failed(key, error)
            else:
                self._failures.pop(key, None)
                if delay is not None:
                    self.queue.add_after(key, max(delay, _SHORTEST_DELAY))
            if number % _BATCH == 0:
                await asyncio.sleep(0)

    async def _attempt(self, key: K) -> float | None:
        """Reconcile one key; an object that has been deleted meanwhile is no failure."""
        try:
            return await self.reconcile(key)
        except ApiError as error:
            if not is_gone(error):
                raise
            return None

    def _failed(self, key: K, error: Exception) -> None:
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        if count == 0 and not is_conflict(error):
            log.warning(
                "reconcile failed", controller=self.name, key=str(key), reason=str(error), exc_info=_trace(error)
            )
        self.queue.add_after(key, min(_BACKOFF_FIRST * 2**count, _BACKOFF_LONGEST))

    # requests

    @property
    def now(self) -> datetime:
        return self.clock.now()

    async def call(self, method: str, url: str, body: Json = None, *, content_type: str = "application/json") -> Json:
        if method in ("POST", "PUT", "PATCH"):
            url = f"{url}?fieldManager={_FIELD_MANAGER}"
        return await self.cluster.call(method, url, body, user=self.user, content_type=content_type)

    async def patch(self, url: str, patch: Json) -> Json:
        return await self.call("PATCH", url, patch, content_type=MERGE_PATCH)

    def url(self, key: GroupResource, where: Key, subresource: str = "") -> str:
        """The URL of an object; raises LookupError if its kind is not served."""
        resource = self.cluster.registry.get(key.group, key.plural)
        if resource is None:
            raise LookupError(f"{key.plural}.{key.group} is not served")
        return object_url(resource, where, subresource)


def object_url(resource: Resource, where: Key, subresource: str = "") -> str:
    """The path of an object, or of a collection if the key has no name."""
    version = next((version.name for version in resource.versions.values() if version.served), resource.storage_version)
    path = f"/apis/{resource.group}/{version}" if resource.group else f"/api/{version}"
    if resource.namespaced:
        path += f"/namespaces/{quote(where.namespace)}"
    path += f"/{resource.plural}"
    if where.name:
        path += f"/{quote(where.name)}"
    return f"{path}/{subresource}" if subresource else path


def is_conflict(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.code == 409


def is_gone(error: Exception) -> bool:
    return isinstance(error, ApiError) and error.code == 404


def _trace(error: Exception) -> bool:
    """True if to log a traceback; the message of an API error explains it."""
    return not isinstance(error, (ApiError, LookupError))
