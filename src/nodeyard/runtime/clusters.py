"""The further clusters of one capability: connected while they are named, watched, and written to.

    own view ──clusters(view)──▶ named ──┬─▶ Cluster leaf-1: contact, watches, view, the target of actions
                                         └─▶ Cluster leaf-2: ...

Each stands alone: its own connections, caches and tasks, so that one that is slow, dead or refused costs the others
nothing. One that is not named any more is disconnected, and what was known of it goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from nodeyard.apply.ways import Target
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability, Elsewhere, Key
from nodeyard.runtime.cluster import Cluster, Following, Surroundings, blank
from nodeyard.watch.view import CacheView

# Changes of one moment are one question to `clusters`.
PAUSE_SECONDS: Final = 0.05

_log = get_logger("clusters")


class Clusters:
    def __init__(
        self,
        capability: Capability,
        around: Surroundings,
        following: Following,
        is_ours: Callable[[Key], bool] = lambda _key: True,
    ) -> None:
        """`is_ours` says of a key whether the clusters that belong to it are to be connected from here."""
        self._capability = capability
        self._is_ours = is_ours
        self._around = around
        self._following = following
        self._home: CacheView
        self._wake = asyncio.Event()
        self._running: dict[str, tuple[Cluster, asyncio.Task[None]]] = {}
        self._blank = blank(capability, around)

    def attach(self, home: CacheView) -> None:
        """Our own view, which names the clusters and shows them."""
        self._home = home
        home.elsewhere = self.view
        self._blank.elsewhere = self.view
        self._blank.findings = home.findings

    # asked by views and by the applier

    def view(self, name: str) -> CacheView:
        """The named cluster; our own where no name is given."""
        if not name:
            return self._home
        running = self._running.get(name)
        return self._blank if running is None else running[0].view

    def target(self, name: str) -> Target | str:
        running = self._running.get(name)
        if running is None:
            return "it is not one of those that the capability names now"
        view = running[0].view
        return running[0].target if view.is_connected else view.error or "there is no contact yet"

    # running

    @property
    def named(self) -> tuple[Cluster, ...]:
        return tuple(cluster for cluster, _ in self._running.values())

    def look_again(self) -> None:
        """Our own view has changed: other clusters may be named."""
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled; then all are disconnected."""
        self._wake.set()
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                await self.reconcile()
                await self._around.clock.sleep(PAUSE_SECONDS)
        finally:
            await self._end(tuple(self._running), "stopping")

    async def reconcile(self) -> None:
        """Begin with those that are named and were not, end with those that are not any more."""
        wanted = self._wanted()
        if wanted is None:
            return
        has_needs = any(watch.needed is not None for watch in self._capability.cluster_watches)
        await self._end([name for name in self._running if name not in wanted], "not named any more")
        for name, given in wanted.items():
            if name in self._running:
                self._running[name][0].give(given)
                if has_needs:
                    self._running[name][0].look_again()
            else:
                self._begin(given)

    def _wanted(self) -> dict[str, Elsewhere] | None:
        """None where the capability could not say: then things stay as they are."""
        wanted: dict[str, Elsewhere] = {}
        try:
            for each in self._capability.clusters(self._home):
                if self._is_ours(each.key or each.name):
                    wanted.setdefault(each.name, each)
        except Exception:
            _log.exception("keeping the known clusters", capability=self._capability.name)
            return None
        return wanted

    def _begin(self, given: Elsewhere) -> None:
        cluster = Cluster(given, self._capability, self._around, self._following, self._home)
        cluster.view.elsewhere = self.view
        cluster.view.findings = self._home.findings
        task = asyncio.create_task(cluster.run(), name=f"cluster {given.name}")
        self._running[given.name] = cluster, task
        self._around.show(self._capability.name, given.name, False)

    async def settle(self, seconds: float) -> None:
        """Until it is known of each named cluster how things stand, but no longer than this."""
        deadline = self._around.clock.monotonic() + seconds
        await self.reconcile()
        for cluster in self.named:
            cluster.inquire()
        while not all(cluster.is_settled for cluster in self.named):
            if self._around.clock.monotonic() >= deadline:
                return
            await self._around.clock.sleep(PAUSE_SECONDS)

    async def _end(self, names: Iterable[str], reason: str) -> None:
        ending = [(name, self._running.pop(name)[1]) for name in names]
        for name, task in ending:
            _log.info("disconnecting", capability=self._capability.name, cluster=name, reason=reason)
            task.cancel()
            self._around.show(self._capability.name, name, None)
        await asyncio.gather(*(task for _, task in ending), return_exceptions=True)
