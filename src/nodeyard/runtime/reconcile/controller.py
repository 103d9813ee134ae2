"""The controller of one capability: its view, workqueue, workers, leadership, applier and recorder.

    informers ──keys──▶ workqueue ──▶ workers ──▶ reconciler ──▶ applier ──overlay──▶ informers

A replica that is not the leader keeps its caches warm and plans nothing; when it becomes leader, every key is queued.
If keys are sharded over replicas (`leadership`), the same holds per key, except for remote clusters: only the owner of
a key connects to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Final

from nodeyard.apply.applier import Applier
from nodeyard.apply.recorder import Recorder
from nodeyard.apply.status import StatusWriter
from nodeyard.client.api import Client
from nodeyard.client.resources import Resource
from nodeyard.client.rest_mapper import RESTMapper
from nodeyard.kube.json import Json
from nodeyard.plan.model import ObjectRef, Plan
from nodeyard.process.aio import first_of
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.annotations import ref_of
from nodeyard.runtime.background import LoopContext, LoopFence, LoopFindings, LoopInputs
from nodeyard.runtime.capability import Capability, Key, ReviewRecorder, View, Watch
from nodeyard.runtime.leader.elections import Elections
from nodeyard.runtime.leader.leadership import Leadership, ShardedLeadership, SingleLeader
from nodeyard.runtime.leader.write_fence import WriteFence
from nodeyard.runtime.metrics import EventLatency, LoopMetrics
from nodeyard.runtime.publication import publish
from nodeyard.runtime.reconcile.expectations import Expectations
from nodeyard.runtime.reconcile.freshness import Freshness
from nodeyard.runtime.reconcile.passes import PassObservers
from nodeyard.runtime.reconcile.plan_executor import PlanExecutor
from nodeyard.runtime.reconcile.reconciler import STALE_SECONDS, Reconciler, Tools, required_kinds
from nodeyard.runtime.reconcile.worker import Workers
from nodeyard.runtime.reconcile.workqueue import Priority, WorkQueue
from nodeyard.runtime.remote.cluster import ClusterCallbacks, ClusterEnvironment
from nodeyard.runtime.remote.clusters import Clusters
from nodeyard.runtime.settings import Settings
from nodeyard.runtime.sharding.leases import WHOLE
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse
from nodeyard.watch.cache import Change
from nodeyard.watch.informers import InformerFactory
from nodeyard.watch.shared_informer import WatchSpec, full_name
from nodeyard.watch.subscription import EventHandlers

# Events that are not written by then are lost; the lease is not kept from other replicas for their sake.
DRAIN_SECONDS: Final = 5.0
PUBLISH_SECONDS: Final = 0.5
"""Shortest time between two publications."""

_log = get_logger("controller")


@dataclass(frozen=True)
class ControllerEnvironment:
    """The components that all controllers of a process share."""

    client: Client
    clock: Clock
    random: Random
    informers: InformerFactory
    elections: Elections
    metrics: LoopMetrics
    remote: ClusterEnvironment
    """Connection to remote clusters."""
    on_pass: PassObservers


class Controller:
    def __init__(
        self, capability: Capability, env: ControllerEnvironment, settings: Settings, plan_executor: PlanExecutor
    ) -> None:
        self.capability = capability
        self._env = env
        self._settings = settings
        self._plan_executor = plan_executor
        self._metrics = env.metrics.of(capability.name)
        self._expectations = Expectations(self._enqueue)
        self._latency = EventLatency(env.clock)
        self._loop_inputs = LoopInputs()
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._unpublished = asyncio.Event()
        self._queue = WorkQueue(env.clock, window=settings.window, on_take=self._metrics.latency.observe)
        self._leadership = self._new_leadership()
        self._clusters = Clusters(
            capability,
            env.remote,
            ClusterCallbacks(self._on_key, self._enqueue),
            is_ours=self._leadership.is_ours,
        )
        self.view = env.informers.register(
            [self._with_view(watch) for watch in capability.watches],
            capability.aggregates,
            EventHandlers(
                on_key=self._on_key,
                on_synced=self._on_synced,
                on_change=[self._on_view_change] if capability.remote is not None or capability.is_sharded else [],
                on_unmapped=self._on_server_change,
                on_watch_error=self._on_watch_error,
            ),
            declared=self._dynamic_watches if capability.dynamic is not None else None,
        )
        self._clusters.attach(self.view)
        self._findings = LoopFindings(self.view.findings, self._enqueue)
        self.mapper.register(watch.resource for watch in capability.watches if not watch.metadata_only)
        self.mapper.register(kind.resource for kind in capability.kinds)
        self._recorder = Recorder(
            env.client, capability.name, instance=settings.identity, clock=env.clock, random=env.random
        )
        self._metrics_recorder = capability.metrics(env.metrics.metrics) if capability.metrics else None
        self._reconciler = Reconciler(capability, self._tools(), settings)
        self._workers = Workers(self._queue, self._reconciler.reconcile, env.random)
        self._metrics.expose(lambda: self._queue.depth, lambda: float(self.fence.may_write()))
        self._leadership.publish(self._publications(self._reconciler.observe_reason, {}))
        if self._leadership.held is not None:
            self._metrics.expose_held(lambda: self._leadership.held or 0)

    # set-up

    @property
    def fence(self) -> WriteFence:
        """The write fence of work that belongs to no single key."""
        return self._leadership.fence

    def fence_of(self, key: Key) -> WriteFence:
        return self._leadership.fence_of(key)

    @property
    def holder(self) -> str:
        """The replica that does the work that belongs to no single key, as last seen."""
        return self._leadership.holder

    @property
    def held(self) -> dict[Key, Plan]:
        """The plans that wait for an approval, by key."""
        return self._reconciler.held

    @property
    def is_idle(self) -> bool:
        """True while no key is ready or being reconciled."""
        return self._queue.is_idle and not self._queue.depth

    @property
    def is_synced(self) -> bool:
        """True if the informers that plans and reviews need have synced."""
        return self._reconciler.is_synced()

    def observes(self) -> str:
        """Return why nothing may be written now; empty if writes may go out."""
        return self._reconciler.observes()

    @property
    def mapper(self) -> RESTMapper:
        """The RESTMapper of the host cluster."""
        return self._env.informers.mapper

    def record_review(self, request: AdmissionRequest, response: AdmissionResponse) -> None:
        """Record the metrics and events of an admission response; any replica may have answered."""
        if isinstance(self._metrics_recorder, ReviewRecorder):
            self._metrics_recorder.record_review(request, response)
        if response.events and not self.observes():
            for event in response.events:
                self._recorder.record(event)

    def _new_leadership(self) -> Leadership:
        name, settings, clock, random = self.capability.name, self._settings, self._env.clock, self._env.random
        if self.capability.is_sharded and settings.leader_elect:
            return ShardedLeadership(name, self, self._known_keys, settings, clock, random)
        return SingleLeader(name, self, settings, clock, random)

    def _known_keys(self) -> Iterable[Key] | None:
        """Return the keys; None before the caches have synced, when an unknown key is not a deleted one."""
        return self.capability.all_keys(self.view) if self.is_synced else None

    def _tools(self) -> Tools:
        env, name = self._env, self.capability.name
        common: dict[str, Any] = {"clock": env.clock, "random": env.random, "on_written": self._record_write}
        return Tools(
            view=self.view,
            applier=Applier(
                env.client,
                name,
                self.mapper.find,
                on_deleted=self._record_deletion,
                clusters=self._clusters.target,
                **common,
            ),
            status_writer=StatusWriter(env.client, name, self.mapper.find, **common),
            recorder=self._recorder,
            fence_of=self._leadership.fence_of,
            plan_executor=self._plan_executor,
            clock=env.clock,
            metrics=self._metrics,
            random=env.random,
            expectations=self._expectations,
            latency=self._latency,
            loop_inputs=self._loop_inputs,
            metrics_recorder=self._metrics_recorder,
            publish=self._unpublished.set,
            enqueue=self._enqueue,
            reservations=self.view.reservations,
            is_answered=lambda: self.view.is_answered,
            freshness=Freshness(env.client, env.informers, self.view, required_kinds(self.capability)),
            on_pass=env.on_pass,
        )

    @property
    def is_alive(self) -> bool:
        """True if all tasks are running."""
        return self._workers.are_alive and not any(task.done() for task in self._tasks)

    @property
    def plans_for(self) -> float:
        """Seconds since the running plan was started."""
        return self._plan_executor.busy_for

    # running

    def start(self) -> None:
        name = self.capability.name
        has_clusters = self.capability.remote is not None
        self._workers.start(self._settings.workers_with_clusters if has_clusters else self._settings.workers)
        self._tasks = [
            asyncio.create_task(self._recorder.run(), name=f"recorder {name}"),
            asyncio.create_task(self._resync_forever(), name=f"resync {name}"),
            asyncio.create_task(self._leadership.run(), name=f"leadership {name}"),
            asyncio.create_task(self._publish_forever(), name=f"publish {name}"),
        ]
        if has_clusters:
            self._tasks.append(asyncio.create_task(self._clusters.run(), name=f"clusters {name}"))
        self._findings.start()
        self._leadership.start(self._env.elections)
        if self.capability.background is not None:
            for loop in self.capability.background.loops:
                self._env.elections.run(partial(self._run_loop, loop))
        self.resync()

    async def stop(self) -> None:
        """Stop, finishing work in flight. The leases are released later, when the elections stop."""
        await self._workers.stop(self._env.clock, self._settings.grace)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Every replica answers admission reviews and records their events.
        if self._leadership.may_write_any or self.capability.admission.webhooks:
            await first_of(self._recorder.drain(), self._env.clock.sleep(DRAIN_SECONDS))
        await self._queue.close()
        self._plan_executor.close()

    def resync(self, priority: Priority = Priority.FRESH) -> None:
        """Queue every key."""
        self._leadership.refresh_keys()
        for key in self._all_keys():
            self._queue.add(key, priority)

    def _all_keys(self) -> Sequence[Key]:
        try:
            return tuple(self.capability.all_keys(self.view))
        except Exception:
            _log.exception("listing keys failed", capability=self.capability.name)
            return ()

    async def _resync_forever(self) -> None:
        while True:
            await self._env.clock.sleep(self._settings.resync)
            self.resync(Priority.RESYNC)

    async def _run_loop(self, loop: Any, client: Client, stopped: asyncio.Event) -> None:
        with self._loop_inputs.listening() as changed:
            context = LoopContext(
                client,
                self._loop_fence_of,
                self._env.clock,
                stopped,
                self.view,
                self._findings.publish,
                changed,
                self._loop_inputs,
                self._env.remote.connect,
                self._metrics_recorder,
            )
            await loop(context)

    def _loop_fence_of(self, key: Key) -> WriteFence:
        return LoopFence(self._leadership.fence_of(key), self._reconciler)

    # events

    def _with_view(self, watch: Watch) -> Watch:
        """Return the watch with a key function that gets the view, if it needs one."""
        map_with_view = watch.map_with_view
        if map_with_view is None:
            return watch
        return replace(watch, keys=lambda old, new: map_with_view(self.view, old, new))

    def _on_synced(self, _kind: str) -> None:
        """Handle the first sync of a kind."""
        self.resync()

    def _on_watch_error(self) -> None:
        """Handle a watch that broke or recovered. Statuses report it: for declared kinds at once, else if it lasts."""
        if self.capability.dynamic is not None or self._reconciler.reports_staleness:
            self.resync()
        for key in self._all_keys():
            self._queue.add_after(key, STALE_SECONDS)

    def _dynamic_watches(self, view: View) -> Iterable[Watch]:
        dynamic = self.capability.dynamic
        return () if dynamic is None else [self._with_view(watch) for watch in dynamic.watches(view)]

    def _on_key(self, key: Key, change: Change[Any], watch: WatchSpec, cluster: str = "") -> None:
        subject = (full_name(watch.resource), *change.key, *((cluster,) if cluster else ()))
        if self._expectations.observe(key, subject, change.version):
            self._enqueue(key, watch.min_interval)

    def _enqueue(self, key: Key, min_interval: float = 0.0) -> None:
        self._latency.mark(key)
        self._queue.add(key, min_interval=min_interval)

    def _on_view_change(self) -> None:
        """Handle a change of the host cluster's view."""
        self._clusters.refresh()
        self._leadership.refresh_keys()

    def _on_server_change(self) -> None:
        """Handle a change that maps to no key: of the server itself, or of malformed objects."""
        self.resync()
        self._clusters.refresh()

    # leadership

    async def _publish_forever(self) -> None:
        """Publish changes of held plans and observe-only mode on the Leases.

        One edit may change the held plans of thousands of keys, each publication counts all of them, and the next
        renewal sends only the last.
        """
        while True:
            await self._unpublished.wait()
            self._unpublished.clear()
            observe, held = self._reconciler.observe_reason, dict(self._reconciler.held)
            self._leadership.publish(await self._plan_executor(partial(self._publications, observe, held)))
            await self._env.clock.sleep(PUBLISH_SECONDS)

    def _publications(self, observe: str, held: Mapping[Key, Plan]) -> Mapping[Key, str]:
        """Return what to publish, by key. If keys are sharded, a held plan is on the Lease of its key."""
        limit = self._settings.limit
        if self._leadership.held is None:
            return {WHOLE: publish(limit, observe, held.values()).encode()}
        texts = {key: publish(limit, observe, (plan,)).encode() for key, plan in held.items()}
        return {**texts, WHOLE: publish(limit, observe, ()).encode()}

    def on_acquired(self, key: Key | None) -> None:
        if key is None:
            self.resync()
            return
        if self.capability.remote is not None:
            self._clusters.start_declared()
        self._queue.add(key)
        self._clusters.refresh()

    def on_lost(self, key: Key | None) -> None:
        """Stop working on a lost key, unless it has been regained meanwhile."""
        fence = self.fence if key is None else self.fence_of(key)
        if fence.may_write():
            return
        ending = asyncio.create_task(self._workers.abort(key), name="end passes")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        if key is None:
            self._loop_inputs.clear()
        else:
            self._reconciler.forget(key)
            self._clusters.refresh()

    async def finish(self, key: Key) -> None:
        self._loop_inputs.drop(key)
        await self._workers.finish(key, self._env.clock, self._settings.grace)

    def _record_write(self, resource: Resource[Any], answer: Json) -> None:
        self._env.informers.record_write(ref_of(answer, resource.api_version, resource.kind), answer)

    def _record_deletion(self, _resource: Resource[Any], ref: ObjectRef) -> None:
        self._env.informers.record_deletion(ref)
