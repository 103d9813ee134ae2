"""The remote clusters of one capability: connected, watched and written to while they are declared.

    host view ──clusters(view)──▶ declared ──┬─▶ Cluster leaf-1: connection, informers, view, write target
                                             └─▶ Cluster leaf-2: ...

Each has its own connections, caches and tasks, so that a slow, dead or rejected cluster costs the others nothing. A
cluster that is no longer declared is disconnected and forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from nodeyard.apply.writers import Target
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import NO_CLUSTERS, Capability, Key, RemoteClusterRef
from nodeyard.runtime.remote.cluster import Cluster, ClusterCallbacks, ClusterEnvironment, empty_view
from nodeyard.watch.view import CacheView

# Debounce: changes within this time cause one call of `clusters`.
DEBOUNCE_SECONDS: Final = 0.05

_log = get_logger("clusters")


class Clusters:
    def __init__(
        self,
        capability: Capability,
        env: ClusterEnvironment,
        callbacks: ClusterCallbacks,
        is_ours: Callable[[Key], bool] = lambda _key: True,
    ) -> None:
        """`is_ours` tells whether this replica connects the clusters of a key."""
        self._capability = capability
        self._remote = capability.remote or NO_CLUSTERS
        self._is_ours = is_ours
        self._env = env
        self._callbacks = callbacks
        self._host: CacheView
        self._wake = asyncio.Event()
        self._running: dict[str, tuple[Cluster, asyncio.Task[None]]] = {}
        self._empty = empty_view(capability, env)

    def attach(self, host: CacheView) -> None:
        """Attach the host view, which declares the clusters and shows them."""
        self._host = host
        host.elsewhere = self.view
        self._empty.elsewhere = self.view
        self._empty.findings = host.findings

    # for views and the applier

    def view(self, name: str) -> CacheView:
        """Return the view of a cluster; of the host cluster if no name is given."""
        if not name:
            return self._host
        running = self._running.get(name)
        return self._empty if running is None else running[0].view

    def target(self, name: str) -> Target | str:
        running = self._running.get(name)
        if running is None:
            return "it is no longer declared"
        view = running[0].view
        return running[0].target if view.is_connected else view.error or "it is not connected yet"

    # running

    @property
    def running(self) -> tuple[Cluster, ...]:
        return tuple(cluster for cluster, _ in self._running.values())

    def refresh(self) -> None:
        """The host view has changed: other clusters may be declared."""
        self._wake.set()

    def start_declared(self) -> None:
        """Start clusters that are newly declared, without waiting for the debounce.

        Called before the first pass of a key: that pass must already see its cluster as ours, though not connected.
        """
        for name, ref in (self._declared_clusters() or {}).items():
            if name not in self._running:
                self._start(ref)

    async def run(self) -> None:
        """Run until cancelled; then disconnect all."""
        self._wake.set()
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self.reconcile()
                await self._env.clock.sleep(DEBOUNCE_SECONDS)
        finally:
            await self._stop(tuple(self._running), "stopping")

    async def reconcile(self) -> None:
        """Start clusters that are newly declared, and stop those that are not any more."""
        declared = self._declared_clusters()
        if declared is None:
            return
        has_needs = any(watch.needed is not None for watch in self._remote.watches)
        await self._stop([name for name in self._running if name not in declared], "not running any more")
        for name, ref in declared.items():
            if name in self._running:
                self._running[name][0].update(ref)
                if has_needs:
                    self._running[name][0].refresh()
            else:
                self._start(ref)

    def _declared_clusters(self) -> dict[str, RemoteClusterRef] | None:
        """Return the declared clusters; None if the capability failed, which changes nothing."""
        declared: dict[str, RemoteClusterRef] = {}
        try:
            for each in self._remote.clusters(self._host):
                if self._is_ours(each.key or each.name):
                    declared.setdefault(each.name, each)
        except Exception:
            _log.exception("listing clusters failed", capability=self._capability.name)
            return None
        return declared

    def _start(self, ref: RemoteClusterRef) -> None:
        cluster = Cluster(ref, self._capability, self._env, self._callbacks, self._host)
        cluster.view.elsewhere = self.view
        cluster.view.findings = self._host.findings
        task = asyncio.create_task(cluster.run(), name=f"cluster {ref.name}")
        self._running[ref.name] = cluster, task
        self._env.show(self._capability.name, ref.name, False)

    async def settle(self, seconds: float) -> None:
        """Wait until the state of each cluster is known, at most this long."""
        deadline = self._env.clock.monotonic() + seconds
        await self.reconcile()
        for cluster in self.running:
            cluster.discover()
        while not all(cluster.is_settled for cluster in self.running):
            if self._env.clock.monotonic() >= deadline:
                return
            await self._env.clock.sleep(DEBOUNCE_SECONDS)

    async def _stop(self, names: Iterable[str], reason: str) -> None:
        ending = [(name, self._running.pop(name)[1]) for name in names]
        for name, task in ending:
            _log.info("cluster removed", capability=self._capability.name, cluster=name, reason=reason)
            task.cancel()
            self._env.show(self._capability.name, name, None)
        await asyncio.gather(*(task for _, task in ending), return_exceptions=True)
