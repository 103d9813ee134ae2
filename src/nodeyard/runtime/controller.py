"""One capability at work: its view, queue, workers, election, applier and recorder, joined.

    watches ──mark──▶ queue ──▶ workers ──▶ reconciler ──▶ applier ──wrote──▶ watches (overlay)

A replica that does not lead keeps its caches warm and plans nothing; when it comes to lead, every key is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
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
from nodeyard.runtime.capability import Capability, Key, Watch
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


class Controller:
    def __init__(self, capability: Capability, place: Place, settings: Settings, think: Thinker) -> None:
        self.capability = capability
        self._place = place
        self._settings = settings
        self._think = think
        self._metrics = place.metrics.of(capability.name)
        self._news = News()
        self._changing: Subject = ("", "", "")
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop
        self._queue = Queue(place.clock, window=settings.window, on_take=self._metrics.latency.observe)
        self.view = place.watches.register(
            [replace(watch, keys=self._noting(watch)) for watch in capability.watches],
            capability.aggregates,
            mark=self._mark,
            on_synced=lambda _kind: self.resync(),
        )
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
            applier=Applier(place.client, name, place.served.find, on_deleted=self._deleted, **common),
            statuses=StatusWriter(place.client, name, place.served.find, **common),
            recorder=self._recorder,
            gate=self.gate,
            think=self._think,
            clock=place.clock,
            metrics=self._metrics,
            random=place.random,
            news=self._news,
            measure=self.capability.metrics(place.metrics.metrics) if self.capability.metrics else None,
        )

    @property
    def is_alive(self) -> bool:
        """Whether everything that should run does."""
        return self._workers.are_alive and not any(task.done() for task in self._tasks)

    # running

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        name = self.capability.name
        self._workers.start(self._settings.workers)
        self._tasks = [
            asyncio.create_task(self._recorder.run(), name=f"recorder {name}"),
            asyncio.create_task(self._resync_forever(), name=f"resync {name}"),
        ]
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
        await loop(LoopContext(client, self.gate, self._place.clock, stopped, self.view))

    # what happens

    def _noting(self, watch: Watch) -> Callable[[Any | None, Any | None], Iterable[Key]]:
        """The watch's keys, after noting whose change they are of: `_mark` is called with each at once."""
        keys, kind = watch.keys, watch.resource.kind
        key_of = identity_of(Source(watch.resource, metadata_only=watch.metadata_only).decoded.view).key

        def noted(old: Any | None, new: Any | None) -> Iterable[Key]:
            self._changing = (kind, *key_of(old if new is None else new))
            return keys(old, new)

        return noted

    def _mark(self, key: Key) -> None:
        self._news.changed(key, self._changing)
        self._queue.add(key)

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
