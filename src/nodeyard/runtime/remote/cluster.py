"""One remote cluster, for as long as a capability declares it: its transport, informers, view and write target.

    connection ──on_connected, on_disconnected──▶ Cluster ──pause, resume──▶ informers ──▶ view
                                                     │
                                                     └── the capability's keys of the cluster are queued

Connections, caches and tasks are its own, so that a failure affects only this cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from nodeyard.apply.writers import Target
from nodeyard.client.api import Client, Observer
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Json
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock
from nodeyard.process.logs import bind, get_logger
from nodeyard.runtime.annotations import ref_of
from nodeyard.runtime.capability import NO_CLUSTERS, Capability, Key, Remote, RemoteClusterRef, View, Watch
from nodeyard.runtime.remote.client import MemoryBudget, MemoryUse, RemoteClient, cached_bytes, memory_aggregates
from nodeyard.runtime.remote.connect import Connect, Read, connect_by_kubeconfig
from nodeyard.runtime.remote.connection import Connection
from nodeyard.runtime.remote.transport import RemoteTransport
from nodeyard.watch.cache import Change
from nodeyard.watch.informers import InformerFactory
from nodeyard.watch.shared_informer import WatchSpec
from nodeyard.watch.subscription import EventHandlers
from nodeyard.watch.view import CacheView

CONNECTING: Final = 32
"""Clusters that connect at once in the whole process: enough that dead ones do not delay the others."""
REQUEST_SECONDS: Final = 10.0
RESTART_SECONDS: Final = 5.0

_log = get_logger("clusters")


@dataclass(frozen=True)
class ClusterEnvironment:
    """The components that the remote clusters of all capabilities share."""

    clock: Clock
    random: Random
    connect: Connect = connect_by_kubeconfig
    observe: Observer | None = None
    connecting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CONNECTING))
    show: Callable[[str, str, bool | None], None] = lambda _capability, _cluster, _is_connected: None
    """Called with the connection state of a capability's cluster; None when it is no longer declared."""
    read: Read | None = None
    """Reads kubeconfigs from Secrets of the host cluster."""
    memory_budget: MemoryBudget = field(default_factory=MemoryBudget)
    """Bounds the memory of all remote clusters together."""


@dataclass(frozen=True)
class ClusterCallbacks:
    """Callbacks for events of a remote cluster."""

    on_key: Callable[[Key, Change[Any], WatchSpec, str], None] = lambda _key, _change, _watch, _cluster: None
    """Called with each key that a change concerns, the change, the watch that mapped it, and the cluster."""
    enqueue: Callable[[Key], None] = lambda _key: None
    """Queues a key for any other reason."""


class Cluster:
    """A remote cluster, for as long as it is declared."""

    def __init__(
        self,
        ref: RemoteClusterRef,
        capability: Capability,
        env: ClusterEnvironment,
        callbacks: ClusterCallbacks,
        host: View,
    ) -> None:
        self.name = ref.name
        self._capability = capability
        self._env = env
        self._callbacks = callbacks
        self._host = host
        self._transport = RemoteTransport(ref.name, self._probe_soon)
        memory = self._memory = MemoryUse(self._reject, env.memory_budget)
        client = self._client = RemoteClient(
            self._transport, timeout=REQUEST_SECONDS, observe=env.observe, memory_use=memory
        )
        self._informers = InformerFactory(client, env.clock, env.random, identifies=False)
        self._informers.pause()
        remote = self._remote = capability.remote or NO_CLUSTERS
        self._informers.mapper.register(each.resource for each in remote.watches if not each.metadata_only)
        self.view = _register(self._informers, remote, ref.name, callbacks, self._enqueue_keys)
        caches = cached_bytes(self.view, remote.watches)
        memory.kept = lambda: caches() + client.catalog_bytes
        self.target = self._new_target()
        self._connection = Connection(
            ref,
            env.connect,
            self._transport,
            self,
            clock=env.clock,
            random=env.random,
            connecting=env.connecting,
            read=env.read,
        )

    def update(self, ref: RemoteClusterRef) -> None:
        self._connection.update(ref)

    def refresh(self) -> None:
        """The host view has changed; `needed` of the watches may depend on it."""
        self._informers.reevaluate_needed()

    @property
    def is_settled(self) -> bool:
        """True once the state is known: all informers synced, or disconnected with a reason."""
        return bool(self.view.error) or (self.view.is_connected and self._informers.is_synced)

    def discover(self) -> None:
        """Discover in advance what a plan may ask about the server."""
        self._informers.server_info.ask_versions()

    async def run(self) -> None:
        """Run until cancelled; then disconnect."""
        bind(capability=self._capability.name, cluster=self.name)
        try:
            await self._run()
        finally:
            self._memory.forget()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._informers.run(), name=f"informers {self.name}")
                    tasks.create_task(self._connection.run(), name=f"connection {self.name}")
            except Exception:
                # A bug of ours must affect only this cluster, and not forever.
                _log.exception("cluster failed")
            self.on_disconnected("reconnecting after an internal error, see the log")
            await self._env.clock.sleep(RESTART_SECONDS)

    # ConnectionListener

    async def forget(self) -> None:
        # A plan made meanwhile must not take the unknown uid for that of a cluster that does not reveal it.
        self.view.is_connected = False
        self.view.version = ""
        await self._informers.forget()
        self._client.catalog_bytes = 0
        self._memory.forget()
        # Last, while detached: until here, plans were made from the caches of the old cluster.
        self.target = self._new_target()

    def on_version(self, version: str) -> None:
        is_late = self.view.is_connected and self.view.version != version
        self.view.version = version
        if is_late:
            self._enqueue_keys()

    async def on_connected(self, uid: str) -> None:
        # Informers that still run use the previous connection.
        await self._informers.end_watches()
        self._informers.server_info.set_uid(uid)
        self._informers.resume()
        self.view.connected_at = self._env.clock.now()
        self._set_connected(is_connected=True, error="")

    def on_disconnected(self, why: str) -> None:
        self._informers.pause()
        self._set_connected(is_connected=False, error=why)

    def _set_connected(self, *, is_connected: bool, error: str) -> None:
        has_changed = (self.view.is_connected, self.view.error) != (is_connected, error)
        self.view.is_connected, self.view.error = is_connected, error
        self._env.show(self._capability.name, self.name, is_connected)
        if has_changed:
            self._enqueue_keys()

    def _reject(self, why: str) -> None:
        self._connection.reject(why)

    def _probe_soon(self) -> None:
        self._connection.probe_soon()

    def _enqueue_keys(self) -> None:
        """Queue the capability's keys of this cluster."""
        try:
            keys = tuple(self._remote.keys(self._host, self.name))
        except Exception:
            _log.exception("listing keys failed", capability=self._capability.name, cluster=self.name)
            return
        for key in keys:
            self._callbacks.enqueue(key)

    # own writes

    def _new_target(self) -> Target:
        now = self._env.clock.monotonic()
        return Target(self._client, self._informers.mapper.find, self._record_write, self._record_deletion, since=now)

    def _record_write(self, resource: Resource[Any], answer: Json) -> None:
        self._informers.record_write(ref_of(answer, resource.api_version, resource.kind), answer)

    def _record_deletion(self, _resource: Resource[Any], ref: ObjectRef) -> None:
        self._informers.record_deletion(ref)


def empty_view(capability: Capability, env: ClusterEnvironment) -> CacheView:
    """Return the view of a cluster that is not declared: nothing is known of it."""
    client = Client(RemoteTransport("", lambda: None))
    return _register(
        InformerFactory(client, env.clock, env.random), capability.remote or NO_CLUSTERS, "", ClusterCallbacks()
    )


def _register(
    informers: InformerFactory,
    remote: Remote,
    name: str,
    callbacks: ClusterCallbacks,
    enqueue_keys: Callable[[], None] = lambda: None,
) -> CacheView:
    view = informers.register(
        [_with_remote_keys(watch, name) for watch in remote.watches],
        (*remote.aggregates, *memory_aggregates(remote.watches)),
        EventHandlers(
            on_key=lambda key, change, watch: callbacks.on_key(key, change, watch, name),
            on_synced=lambda _kind: enqueue_keys(),
            on_unmapped=enqueue_keys,
            on_watch_error=enqueue_keys,
        ),
    )
    view.name, view.is_connected = name, False
    return view


def _with_remote_keys(watch: Watch, cluster: str) -> Watch:
    map_remote = watch.map_remote
    if map_remote is None:
        return watch
    return replace(watch, keys=lambda old, new: map_remote(cluster, old, new))
