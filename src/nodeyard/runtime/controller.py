"""One capability at work: its view, queue, workers, election, applier and recorder, joined.

    watches ──mark──▶ queue ──▶ workers ──▶ reconciler ──▶ applier ──wrote──▶ watches (overlay)

A replica that does not lead keeps its caches warm and plans nothing; when it comes to lead, every key is due. Where
replicas share the keys out (`ownership`), the same is so key by key, but for the further clusters: only who has the key
connects to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Final

from nodeyard.apply.applier import Applier
from nodeyard.apply.recorder import Recorder
from nodeyard.apply.status import StatusWriter
from nodeyard.client.api import Client
from nodeyard.client.resources import Resource
from nodeyard.kube.identity import identity_of
from nodeyard.kube.json import Json
from nodeyard.plan.model import ObjectRef, Plan
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.backoff import Failures
from nodeyard.runtime.briefs import Briefs
from nodeyard.runtime.capability import Capability, Key, MeasuresReviews, View, Watch
from nodeyard.runtime.cluster import Following, Surroundings
from nodeyard.runtime.clusters import Clusters
from nodeyard.runtime.elections import Elections, Gate
from nodeyard.runtime.findings import Findings
from nodeyard.runtime.lag import Lag
from nodeyard.runtime.leader import first_of
from nodeyard.runtime.loops import LoopContext, LoopGate
from nodeyard.runtime.metrics import LoopMetrics
from nodeyard.runtime.news import News, Subject
from nodeyard.runtime.ownership import Ownership, Shared, Undivided
from nodeyard.runtime.queue import Priority, Queue
from nodeyard.runtime.reconciler import Reconciler, Tools
from nodeyard.runtime.roots import ref_of
from nodeyard.runtime.served import Served
from nodeyard.runtime.settings import Settings
from nodeyard.runtime.thinking import Thinker
from nodeyard.runtime.webhooks import Review, Verdict
from nodeyard.runtime.worker import Workers
from nodeyard.watch.sources import Source
from nodeyard.watch.watches import Watches

# Events that the server does not take at a stop are lost; the lease is not kept from others for their sake.
DRAIN_SECONDS: Final = 5.0

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
        self._news = News(self._due)
        self._lag = Lag(place.clock)
        self._briefs = Briefs()
        self._changing: tuple[Subject, str] = (("", "", ""), "")
        self._calm = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._queue = Queue(place.clock, window=settings.window, on_take=self._metrics.latency.observe)
        self._ownership = self._owned()
        self._clusters = Clusters(
            capability, place.around, Following(self._noted, self._mark, self._due), is_ours=self._ownership.is_ours
        )
        self.view = place.watches.register(
            [self._noted(watch) for watch in capability.watches],
            capability.aggregates,
            declared=self._declared if capability.has_declared else None,
            mark=self._mark,
            on_synced=self._told,
            on_change=self._look_again if capability.has_clusters or capability.is_shared else None,
            on_news=self._hear,
            # What is wrong with a kind that a user declared is told in a status; others are for health to tell.
            on_trouble=self.resync if capability.has_declared else lambda: None,
        )
        self._clusters.attach(self.view)
        self._findings = Findings(self.view.findings, self._due)
        place.served.watch(watch.resource for watch in capability.watches if not watch.metadata_only)
        place.served.watch(kind.resource for kind in capability.kinds)
        self._recorder = Recorder(
            place.client, capability.name, instance=settings.identity, clock=place.clock, random=place.random
        )
        self._measure = capability.metrics(place.metrics.metrics) if capability.metrics else None
        self._measures_reviews = self._measure if isinstance(self._measure, MeasuresReviews) else None
        self._reconciler = Reconciler(capability, self._tools(), settings)
        self._workers = Workers(self._queue, self._reconciler.reconcile, Failures(place.random))
        self._metrics.expose(lambda: self._queue.depth, lambda: float(self.gate.may_write()))
        if self._ownership.held is not None:
            self._metrics.expose_held(lambda: self._ownership.held or 0)

    # set-up

    @property
    def gate(self) -> Gate:
        """For what is not of one key."""
        return self._ownership.gate

    def gate_of(self, key: Key) -> Gate:
        return self._ownership.gate_of(key)

    @property
    def holder(self) -> str:
        """Who does what is not of one key, as last seen."""
        return self._ownership.holder

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

    @property
    def served(self) -> Served:
        """What the server has, as far as it is known."""
        return self._place.served

    def reviewed(self, review: Review, verdict: Verdict) -> None:
        """A webhook of the capability has answered; on whichever replica was asked."""
        if self._measures_reviews is not None:
            self._measures_reviews.reviewed(review, verdict)
        if verdict.events and not self.observes():
            for event in verdict.events:
                self._recorder.record(event)

    def _owned(self) -> Ownership:
        name, settings, clock, random = self.capability.name, self._settings, self._place.clock, self._place.random
        if self.capability.is_shared and settings.leader_elect:
            return Shared(name, self, self._known_keys, settings, clock, random)
        return Undivided(name, self, settings, clock, random)

    def _known_keys(self) -> Iterable[Key] | None:
        """None before everything is told: a key that is not known yet is not one that is gone."""
        return self.capability.all_keys(self.view) if self.is_synced else None

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
            gate_of=self._ownership.gate_of,
            think=self._think,
            clock=place.clock,
            metrics=self._metrics,
            random=place.random,
            news=self._news,
            lag=self._lag,
            briefs=self._briefs,
            measure=self._measure,
            is_answered=lambda: self.view.is_answered,
        )

    @property
    def is_alive(self) -> bool:
        """Whether everything that should run does."""
        return self._workers.are_alive and not any(task.done() for task in self._tasks)

    @property
    def thinks_for(self) -> float:
        """Seconds since the plan was begun that is being made."""
        return self._think.busy_for

    # running

    def start(self) -> None:
        name = self.capability.name
        has_clusters = self.capability.has_clusters
        self._workers.start(self._settings.workers_elsewhere if has_clusters else self._settings.workers)
        self._tasks = [
            asyncio.create_task(self._recorder.run(), name=f"recorder {name}"),
            asyncio.create_task(self._resync_forever(), name=f"resync {name}"),
            asyncio.create_task(self._ownership.run(), name=f"ownership {name}"),
        ]
        if has_clusters:
            self._tasks.append(asyncio.create_task(self._clusters.run(), name=f"clusters {name}"))
        self._findings.start()
        self._ownership.start(self._place.elections)
        for loop in self.capability.loops:
            self._place.elections.run(partial(self._run_loop, loop))
        self.resync()

    async def stop(self) -> None:
        """Finish what is in flight. The lease is given back when the elections stop, after this."""
        await self._workers.stop(self._place.clock, self._settings.grace)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Reviews are answered, and told of, by whoever is asked.
        if self._ownership.may_write_any or self.capability.webhooks:
            await first_of(self._recorder.drain(), self._place.clock.sleep(DRAIN_SECONDS))
        await self._queue.close()
        self._think.close()

    def resync(self, priority: Priority = Priority.FRESH) -> None:
        """Every key is due."""
        self._ownership.look_again()
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
        with self._briefs.listening() as changed:
            context = LoopContext(
                client,
                self._loop_gate_of,
                self._place.clock,
                stopped,
                self.view,
                self._findings.publish,
                changed,
                self._briefs,
                self._place.around.connect,
                self._measure,
            )
            await loop(context)

    def _loop_gate_of(self, key: Key) -> Gate:
        return LoopGate(self._ownership.gate_of(key), self._reconciler)

    # what happens

    def _noted(self, watch: Watch, cluster: str = "") -> Watch:
        """The watch with keys that note first whose change they are of: `_mark` is called with each at once."""
        keys, keys_in = watch.keys, watch.keys_in
        kind, place = watch.resource.kind, (cluster,) if cluster else ()
        identity = identity_of(Source(watch.resource, metadata_only=watch.metadata_only).decoded.view)

        def noted(old: Any | None, new: Any | None) -> Iterable[Key]:
            subject = (kind, *identity.key(old if new is None else new), *place)
            self._changing = (subject, "" if new is None else identity.version(new))
            self._calm = watch.calm
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
            self._due(key, self._calm)

    def _due(self, key: Key, calm: float = 0.0) -> None:
        self._lag.mark(key)
        self._queue.add(key, calm=calm)

    def _look_again(self) -> None:
        """Our own view has changed."""
        self._clusters.look_again()
        self._ownership.look_again()

    def _hear(self) -> None:
        """Something is known that no key can be named for: of the server itself, or objects not understood."""
        self.resync()
        self._clusters.look_again()

    # what is ours

    def gained(self, key: Key | None) -> None:
        if key is None:
            self.resync()
            return
        self._queue.add(key)
        self._clusters.look_again()

    def lost(self, key: Key | None) -> None:
        """Unless it has come back meanwhile."""
        gate = self.gate if key is None else self.gate_of(key)
        if gate.may_write():
            return
        ending = asyncio.create_task(self._workers.abort(key), name="end passes")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        if key is None:
            self._briefs.clear()
        else:
            self._reconciler.forget(key)
            self._clusters.look_again()

    async def finish(self, key: Key) -> None:
        self._briefs.drop(key)
        await self._workers.finish(key, self._place.clock, self._settings.grace)

    def _wrote(self, resource: Resource[Any], answer: Json) -> None:
        self._place.watches.wrote(ref_of(answer, resource.api_version, resource.kind), answer)

    def _deleted(self, _resource: Resource[Any], ref: ObjectRef) -> None:
        self._place.watches.deleted(ref)
