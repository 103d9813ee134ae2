"""One capability at work: its view, queue, workers, election, applier and recorder, joined.

    watches ──mark──▶ queue ──▶ workers ──▶ reconciler ──▶ applier ──wrote──▶ watches (overlay)

A replica that does not lead keeps its caches warm and plans nothing; when it comes to lead, every key is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from nodeyard.apply.applier import Applier
from nodeyard.apply.recorder import Recorder
from nodeyard.apply.status import StatusWriter
from nodeyard.client.api import Client
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Json
from nodeyard.plan.model import ObjectRef, Plan
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.backoff import Failures
from nodeyard.runtime.capability import Capability, Key, View, Watch
from nodeyard.runtime.cluster import Following, Surroundings
from nodeyard.runtime.clusters import Clusters
from nodeyard.runtime.elections import ALWAYS, Elections, Gate
from nodeyard.runtime.leader import Leader, lease_name
from nodeyard.runtime.loops import LoopContext
from nodeyard.runtime.metrics import LoopMetrics
from nodeyard.runtime.news import News, Subject
from nodeyard.runtime.queue import Priority, Queue
from nodeyard.runtime.reconciler import Reconciler, Tools
from nodeyard.runtime.roots import ref_of
from nodeyard.runtime.served import Served
from nodeyard.runtime.settings import Settings
from nodeyard.runtime.thinking import Thinker
from nodeyard.runtime.worker import Workers
from nodeyard.watch.identity import identity_of
from nodeyard.watch.sources import Source
from nodeyard.watch.watches import Watches

_log = get_logger("controller")


@dataclass(frozen=True)
class Place:
    """What all controllers of a process share."""

    client: Client
    clock: Clock
    random: Random
    watches: Watches
    served: Served
    elections: Elections
    metrics: LoopMetrics
    around: Surroundings
    """How further clusters are reached."""


class Controller:
    def __init__(self, capability: Capability, place: Place, settings: Settings, think: Thinker) -> None:
        self.capability = capability
        self._place = place
        self._settings = settings
        self._think = think
        self._metrics = place.metrics.of(capability.name)
        self._news = News(lambda key: self._queue.add(key))
        self._changing: tuple[Subject, str] = (("", "", ""), "")
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop
        self._queue = Queue(place.clock, window=settings.window, on_take=self._metrics.latency.observe)
        self._clusters = Clusters(capability, place.around, Following(self._noted, self._mark))
        self.view = place.watches.register(
            [self._noted(watch) for watch in capability.watches],
            capability.aggregates,
            declared=self._declared if capability.has_declared else None,
            mark=self._mark,
            on_synced=self._told,
            on_change=self._clusters.look_again if capability.has_clusters else None,
            on_news=self._hear,
            # What is wrong with a kind that a user declared is told in a status; others are for health to tell.
            on_trouble=self.resync if capability.has_declared else lambda: None,
        )
        self._clusters.attach(self.view)
        place.served.watch(watch.resource for watch in capability.watches if not watch.metadata_only)
        place.served.watch(kind.resource for kind in capability.kinds)
        self._leader = self._elect()
        self._recorder = Recorder(
            place.client, capability.name, instance=settings.identity, clock=place.clock, random=place.random
        )
        self._reconciler = Reconciler(capability, self._tools(), settings)
        self._workers = Workers(self._queue, self._reconciler.reconcile, Failures(place.random))
        self._metrics.expose(lambda: self._queue.depth, lambda: float(self.gate.may_write()))

    # set-up

    @property
    def gate(self) -> Gate:
        return ALWAYS if self._leader is None else self._leader

    @property
    def holder(self) -> str:
        """Who leads, as last seen."""
        return self._settings.identity if self._leader is None else self._leader.holder

    @property
    def held(self) -> dict[Key, Plan]:
        """The plans that wait for an approval."""
        return self._reconciler.held

    @property
    def is_synced(self) -> bool:
        """Whether what a plan or a review needs has been told."""
        return self._reconciler.is_synced()

    def observes(self) -> str:
        """Why nothing is written now; empty when things are."""
        return self._reconciler.observes()

    def _elect(self) -> Leader | None:
        if not self._settings.leader_elect:
            return None
        return Leader(
            lease_name(self.capability.name),
            self._settings.identity,
            self._place.clock,
            timing=self._settings.lease,
            random=self._place.random,
            on_change=self._on_change,
        )

    def _tools(self) -> Tools:
        place, name = self._place, self.capability.name
        common: dict[str, Any] = {"clock": place.clock, "random": place.random, "on_written": self._wrote}
        return Tools(
            view=self.view,
            applier=Applier(
                place.client,
                name,
                place.served.find,
                on_deleted=self._deleted,
                elsewhere=self._clusters.target,
                **common,
            ),
            statuses=StatusWriter(place.client, name, place.served.find, **common),
            recorder=self._recorder,
            gate=self.gate,
            think=self._think,
            clock=place.clock,
            metrics=self._metrics,
            random=place.random,
            news=self._news,
            measure=self.capability.metrics(place.metrics.metrics) if self.capability.metrics else None,
            is_answered=lambda: self.view.is_answered,
        )

    @property
    def is_alive(self) -> bool:
        """Whether everything that should run does."""
        return self._workers.are_alive and not any(task.done() for task in self._tasks)

    # running

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        name = self.capability.name
        has_clusters = self.capability.has_clusters
        self._workers.start(self._settings.workers_elsewhere if has_clusters else self._settings.workers)
        self._tasks = [
            asyncio.create_task(self._recorder.run(), name=f"recorder {name}"),
            asyncio.create_task(self._resync_forever(), name=f"resync {name}"),
        ]
        if has_clusters:
            self._tasks.append(asyncio.create_task(self._clusters.run(), name=f"clusters {name}"))
        if self._leader is not None:
            self._place.elections.run(self._leader.run)
        for loop in self.capability.loops:
            self._place.elections.run(partial(self._run_loop, loop))
        self.resync()

    async def stop(self) -> None:
        """Finish what is in flight. The lease is given back when the elections stop, after this."""
        await self._workers.stop(self._place.clock, self._settings.grace)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.gate.may_write():
            await self._recorder.drain()
        await self._queue.close()
        self._think.close()

    def resync(self, priority: Priority = Priority.FRESH) -> None:
        """Every key is due."""
        try:
            keys: Iterable[Key] = tuple(self.capability.all_keys(self.view))
        except Exception:
            _log.exception("keys are not known", capability=self.capability.name)
            return
        for key in keys:
            self._queue.add(key, priority)

    async def _resync_forever(self) -> None:
        while True:
            await self._place.clock.sleep(self._settings.resync)
            self.resync(Priority.RESYNC)

    async def _run_loop(self, loop: Any, client: Client, stopped: asyncio.Event) -> None:
        connect = self._place.around.connect
        await loop(LoopContext(client, self.gate, self._place.clock, stopped, self.view, connect))

    # what happens

    def _noted(self, watch: Watch, cluster: str = "") -> Watch:
        """The watch with keys that note first whose change they are of: `_mark` is called with each at once."""
        keys, keys_in = watch.keys, watch.keys_in
        kind, place = watch.resource.kind, (cluster,) if cluster else ()
        identity = identity_of(Source(watch.resource, metadata_only=watch.metadata_only).decoded.view)

        def noted(old: Any | None, new: Any | None) -> Iterable[Key]:
            subject = (kind, *identity.key(old if new is None else new), *place)
            self._changing = (subject, "" if new is None else identity.version(new))
            return keys(old, new) if keys_in is None else keys_in(self.view, old, new)

        return replace(watch, keys=noted)

    def _told(self, _kind: str) -> None:
        """A kind is there for the first time. One that a user declared may be written through another path than one
        of its name was, or by nobody so far."""
        if self.capability.has_declared:
            self._place.served.look_again()
        self.resync()

    def _declared(self, view: View) -> Iterable[Watch]:
        return [self._noted(watch) for watch in self.capability.declared(view)]

    def _mark(self, key: Key) -> None:
        if self._news.changed(key, *self._changing):
            self._queue.add(key)

    def _hear(self) -> None:
        """Something is known that no key can be named for: of the server itself, or objects not understood."""
        self.resync()
        self._clusters.look_again()

    def _on_change(self, leads: bool) -> None:
        """Called where the election runs, which may be another thread."""
        self._loop.call_soon_threadsafe(self.resync if leads else self._lose)

    def _lose(self) -> None:
        if not self.gate.may_write():
            self._ending = asyncio.create_task(self._workers.abort(), name="end passes")

    def _wrote(self, resource: Resource[Any], answer: Json) -> None:
        self._place.watches.wrote(ref_of(answer, resource.api_version, resource.kind), answer)

    def _deleted(self, _resource: Resource[Any], ref: ObjectRef) -> None:
        self._place.watches.deleted(ref)
