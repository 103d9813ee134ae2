"""Informer factory of one cluster: shares informers, starts and stops them as needed, and records our own writes.

    informers = InformerFactory(client, clock, random)
    view = informers.register(capability.watches, capability.aggregates, EventHandlers(on_key=..., on_synced=...))
    async with asyncio.TaskGroup() as tasks: tasks.create_task(informers.run())

An informer runs while a capability needs it (`needed(view)`, evaluated after every change of that view) and, if its
kind is optional, while the server serves the kind. Watches with the same key share one informer and one cache. Kinds
declared at run time join and leave a view (`declared`). While a remote cluster is out of contact, its watches pause and
the caches keep their objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import ClientError, NotFound
from nodeyard.client.outages import OUTAGES
from nodeyard.client.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS
from nodeyard.client.rest_mapper import DISCOVERY_SECONDS, RESTMapper
from nodeyard.kube.json import Json
from nodeyard.kube.object_key import Key
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.process.metrics import Metrics
from nodeyard.watch.cache import PendingWrite
from nodeyard.watch.dynamic import DynamicKinds
from nodeyard.watch.indexes import Aggregate, Fold, Index
from nodeyard.watch.reflector import InformerKey, Report
from nodeyard.watch.server_info import ServerInfo
from nodeyard.watch.shared_informer import SharedInformer, WatchSpec, full_name, key_of
from nodeyard.watch.subscription import NO_HANDLERS, EventHandlers, Subscription
from nodeyard.watch.view import CacheView

# Debounces changes, so that `needed` is evaluated once for a burst.
DEBOUNCE_SECONDS: Final = 0.05
# A healthy watch delivers a write within milliseconds. After this time a GET confirms it.
CONFIRM_SECONDS: Final = 15.0
CONFIRM_INTERVAL_SECONDS: Final = 5.0
_KIND_SOURCES: Final = frozenset(map(full_name, (CUSTOM_RESOURCE_DEFINITIONS, API_SERVICES)))
"""Kinds whose objects add and remove other kinds."""

_LABELS: Final = ("resource", "view")
_GAUGES: Final[tuple[tuple[str, str, Callable[[Report], float]], ...]] = (
    ("objects", "Objects in the cache.", lambda report: report.objects),
    ("malformed_objects", "Objects that could not be decoded or indexed.", lambda report: report.malformed),
    ("unconfirmed_writes", "Own writes that the watch has not delivered yet.", lambda report: report.unconfirmed),
    ("silence_seconds", "Seconds since the last watch event or bookmark.", lambda report: report.silence),
    ("synced", "1 after the first complete list.", lambda report: report.is_synced),
    ("stalled", "1 while the cache may be stale.", lambda report: report.is_stalled),
    ("restarts", "Watch failures and relists.", lambda report: report.restarts),
)

_log = get_logger("watches")


class InformerFactory:
    def __init__(self, client: Client, clock: Clock, random: Random, *, identifies: bool = True) -> None:
        """`identifies`: read the cluster's uid when a view asks for it; otherwise the caller sets it."""
        self._client = client
        self._clock = clock
        self._random = random
        self._informers: dict[InformerKey, SharedInformer] = {}
        self._dynamic: list[DynamicKinds] = []
        self._is_known = False
        """True once `needed` was evaluated for all informers and discovery has run for optional kinds."""
        self._was_synced = False
        self._lock = asyncio.Lock()
        self._wake = asyncio.Event()
        self._progress = asyncio.Event()
        self.mapper = RESTMapper(client, clock, self._wake.set)
        self.server_info = ServerInfo(client, clock, self.mapper, self._wake.set)
        self._identifies = identifies
        self._is_paused = False
        self.on_watching: Callable[[SharedInformer], None] = lambda _informer: None
        """Called with each informer that starts to watch."""
        self.on_dropped: Callable[[SharedInformer], None] = lambda _informer: None
        """Called with each informer that was removed because no capability declares its kind."""

    # set-up

    def register(
        self,
        watches: Sequence[WatchSpec],
        aggregates: Sequence[Aggregate] = (),
        handlers: EventHandlers = NO_HANDLERS,
        *,
        declared: Callable[[CacheView], Iterable[WatchSpec]] | None = None,
    ) -> CacheView:
        """Register the watches of a capability and return its view.

        `declared` returns further watches; it is called again after every change of the view.
        """
        informers: dict[str, SharedInformer] = {}
        indexes: dict[tuple[str, str], Index] = {}
        folds: dict[str, Fold] = {}
        view = CacheView(informers, indexes, folds, self.server_info.register(handlers.on_unmapped))
        if declared is not None or any(watch.needed is not None for watch in watches):
            handlers = replace(handlers, on_change=(self._wake.set, *handlers.on_change))
        for watch, names in _names_of(watches):
            if names[0] in informers:
                raise ValueError(f"{names[0]} is watched twice by one capability")
            informer = self._informer(key_of(watch))
            informer.is_static = True
            informer.is_optional &= watch.optional
            subscription = Subscription(informer, (watch,), handlers, _need(watch, view))
            informers |= dict.fromkeys(names, informer)
            indexes |= {(kind, name): index for kind in names for name, index in subscription.indexes.items()}
            folds |= subscription.folds
        for aggregate in aggregates:
            folds[aggregate.name] = Fold(aggregate)
            informers[aggregate.kind].cache.attach(folds[aggregate.name])
        if declared is not None:
            subscribe, on_shown = partial(self._subscribe, handlers), partial(_notify_synced, handlers)
            dynamic = DynamicKinds(partial(declared, view), informers, indexes, folds, subscribe, on_shown)
            self._dynamic.append(dynamic)
            view.refresh = dynamic.refresh
            view.on_recent_kinds(self._wake.set)
        self._wake.set()
        return view

    def _subscribe(self, handlers: EventHandlers, key: InformerKey, watches: Sequence[WatchSpec]) -> Subscription:
        """Subscribe to a newly declared kind. Its CRD may be new as well, so discovery runs soon."""
        informer = self._informer(key)
        if self.mapper.catalog is not None and informer.is_served is None:
            informer.serve(self.mapper.catalog)
            informer.is_served = informer.is_served or None
        if not informer.is_served:
            self.mapper.invalidate()
        subscription = Subscription(informer, watches, handlers, is_late=True)
        self._is_known = False
        self._wake.set()
        return subscription

    def _informer(self, key: InformerKey) -> SharedInformer:
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = SharedInformer(key)
            informer.on_synced += [self._progress.set, self._wake.set]
            informer.on_watch_error += [self._progress.set, self._wake.set]
            if full_name(informer.resource) in _KIND_SOURCES:
                informer.cache.listen(lambda _change: self.mapper.invalidate())
        return informer

    # running

    async def run(self) -> None:
        """Run until cancelled, then stop all watches."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._confirm_forever(), name="confirm own writes")
                while True:
                    self._wake.clear()
                    await self.reconcile()
                    await self._sleep()
        finally:
            await asyncio.gather(*(informer.stop() for informer in self.all))

    async def reconcile(self) -> None:
        """Start the wanted watches and stop the unwanted ones."""
        async with self._lock:
            for each in self._dynamic:
                each.refresh()
            if not self._is_paused:
                await self._discover()
            await self._start_and_stop()
            self._drop()
        self._is_known = all(informer.is_served is not None for informer in self.all if informer.is_optional)
        self._progress.set()

    async def _start_and_stop(self) -> None:
        for informer in self.all:
            if self._is_paused:
                await informer.pause()
                continue
            if not informer.is_wanted and (informer.is_running or informer.is_kept):
                _log.info("watch stopped", resource=str(informer.key), reason="not served or not needed")
                await informer.stop()
                self._switch_version(informer)
            if informer.is_wanted and not informer.is_running:
                _log.info("watch started", resource=str(informer.key))
                informer.start(self._client, self._clock, self._random, self.mapper.invalidate)
                self.on_watching(informer)

    def _switch_version(self, informer: SharedInformer) -> None:
        """Switch to the version that the server serves now, if the watch was stopped for that."""
        if informer.is_served is None and self.mapper.catalog is not None:
            informer.serve(self.mapper.catalog)

    def _drop(self) -> None:
        """Remove informers of kinds that no capability declares."""
        for key, informer in tuple(self._informers.items()):
            if not informer.needs and not informer.is_running:
                del self._informers[key]
                self.on_dropped(informer)

    async def _discover(self) -> None:
        if any(informer.is_optional for informer in self.all):
            self.mapper.follow()
        if await self.mapper.refresh() and self.mapper.catalog is not None:
            for informer in self.all:
                informer.serve(self.mapper.catalog)
            self.server_info.notify()
        self.mapper.expects_changes = self._expects_changes()
        if self._identifies:
            await self.server_info.identify(sum(informer.restarts for informer in self.all))

    def _expects_changes(self) -> bool:
        """Return True if only discovery would show that a kind or a version appears or goes.

        A missing kind may be one of an aggregated API, whose APIService does not change when it serves a new kind.
        """
        if any(informer.is_missing or informer.error for informer in self.all if informer.needs):
            return True
        watched = {full_name(each.resource) for each in self.all if each.is_running and each.covers_all}
        return self.server_info.expects_changes(is_signalled=watched >= _KIND_SOURCES)

    # contact

    def pause(self) -> None:
        """Pause all watches while the cluster is out of contact; caches keep their objects."""
        self._is_paused = True
        self._wake.set()

    async def end_watches(self) -> None:
        """Pause all watches and wait until they have ended."""
        async with self._lock:
            for informer in self.all:
                await informer.pause()

    async def forget(self) -> None:
        """Stop all watches and clear the caches: the server is another cluster now."""
        async with self._lock:
            for informer in self.all:
                informer.is_served = None
                await informer.stop()
        self.mapper.forget()
        self.server_info.forget()

    def resume(self) -> None:
        """Resume all watches after contact is restored."""
        self._is_paused = False
        self.mapper.invalidate()

    def reevaluate_needed(self) -> None:
        """Evaluate `needed` again: its result may have changed for reasons outside these views."""
        self._wake.set()

    async def _sleep(self) -> None:
        """Wait for a relevant change, or for the next discovery."""
        await self._clock.sleep(DEBOUNCE_SECONDS)
        left = DISCOVERY_SECONDS if self._is_paused else min(self.mapper.due_in, self.server_info.due_in)
        waking = asyncio.create_task(self._wake.wait())
        turn = asyncio.create_task(self._clock.sleep(left))
        try:
            await asyncio.wait((waking, turn), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waking.cancel()
            turn.cancel()
            await asyncio.gather(waking, turn, return_exceptions=True)

    # own writes

    def record_write(self, ref: ObjectRef, answer: Json) -> None:
        """Record the server's response to a create, patch or apply; caches show it until the watch delivers it.

        The response is a plain dict, or an object of the type that is watched. An object of another type may lack
        fields and is ignored, as is a Status: the watch delivers it.
        """
        if answer is None or (isinstance(answer, dict) and answer.get("kind") == "Status"):
            return
        for informer in self._informers_of(ref):
            try:
                informer.cache.record_write(answer, self._clock.monotonic() + CONFIRM_SECONDS)
            except msgspec.ValidationError as error:
                # The object has another type or is malformed: the watch delivers it or reports it as malformed.
                _log.debug("own write not cached", object=str(ref), reason=str(error))

    def record_deletion(self, ref: ObjectRef, answer: Json = None) -> None:
        """Record the server's response to a delete: the object if finalizers or grace keep it, else a Status."""
        if isinstance(answer, dict) and (answer.get("metadata") or {}).get("deletionTimestamp"):
            self.record_write(ref, answer)
            return
        for informer in self._informers_of(ref):
            deadline = self._clock.monotonic() + CONFIRM_SECONDS
            informer.cache.record_deletion((ref.namespace, ref.name), ref.uid, deadline)

    def _informers_of(self, ref: ObjectRef) -> Iterable[SharedInformer]:
        return [
            informer
            for informer in self.all
            if informer.resource.kind == ref.kind
            and informer.is_running
            and informer.resource.api_version == ref.api_version
            and informer.key.covers(ref.namespace)
        ]

    async def confirm_overdue(self) -> None:
        """Confirm by a GET each write that the watch should have delivered by now."""
        if self._is_paused:
            return
        now = self._clock.monotonic()
        overdue = [(informer, key, write) for informer in self.all for key, write in informer.cache.overdue(now)]
        await asyncio.gather(*(self._confirm(informer, key, write) for informer, key, write in overdue))

    async def _confirm(self, informer: SharedInformer, key: Key, write: PendingWrite[Any]) -> None:
        namespace, name = key
        try:
            found = await self._client.get(informer.resource, name, namespace)
        except NotFound:
            found = None
        except (ClientError, msgspec.MsgspecError) as error:
            _log.warning("own write not confirmed", resource=str(informer.key), name=name, reason=str(error))
            return
        informer.cache.confirm(key, write, found, self._clock.monotonic() + CONFIRM_SECONDS)

    async def _confirm_forever(self) -> None:
        while True:
            await self._clock.sleep(CONFIRM_INTERVAL_SECONDS)
            OUTAGES.log_missing(_log, self.missing)
            await self.confirm_overdue()

    # health

    @property
    def all(self) -> tuple[SharedInformer, ...]:
        return tuple(self._informers.values())

    @property
    def is_synced(self) -> bool:
        """True if every wanted informer has completed its first list."""
        is_known = self._is_known and not self.server_info.is_waited_for
        is_current = is_known and all(each.is_current for each in self._dynamic)
        return is_current and all(informer.is_settled for informer in self.all if informer.is_wanted)

    @property
    def is_ready(self) -> bool:
        """True if all was synced once, and statically registered kinds are synced now.

        A kind declared later delays only the capability that needs it. A failing watch is not waited for: `broken`
        reports it to the capabilities that need it.
        """
        if not self._was_synced:
            is_known = self._is_known and not self.server_info.is_waited_for
            wanted = [informer for informer in self.all if informer.is_wanted]
            self._was_synced = is_known and all(informer.is_settled or informer.is_broken for informer in wanted)
        required = (informer for informer in self.all if informer.is_static and informer.is_wanted)
        return self._was_synced and all(informer.is_settled or informer.is_broken for informer in required)

    async def wait_for_sync(self) -> None:
        """Wait until `is_synced`."""
        while not self.is_synced:
            self._progress.clear()
            await self._progress.wait()

    @property
    def missing(self) -> list[str]:
        """Required kinds that the server does not serve."""
        return sorted(
            str(informer.key)
            for informer in self.all
            if informer.reflector is not None and informer.reflector.is_missing
        )

    def reports(self) -> list[Report]:
        """Return the health of each running watch."""
        return [report for informer in self.all if (report := informer.report()) is not None]

    @property
    def has_current(self) -> bool:
        """True if at least one watch works."""
        return any(each.reflector is not None and not each.is_broken for each in self.all)

    def broken_watches(self, view: CacheView) -> list[Report]:
        """Return the watches of a view whose caches are empty or stale.

        Kinds declared at run time that cannot be watched are left out: a user's declaration must not stop a capability.
        """
        counted = [
            informer
            for informer in view.informers()
            if informer.is_wanted and (informer.is_static or not informer.error)
        ]
        return [report for informer in counted if informer.is_broken and (report := informer.report()) is not None]


def _names_of(watches: Sequence[WatchSpec]) -> Iterable[tuple[WatchSpec, list[str]]]:
    """Yield each watch with the names of its kind: with the group, and without it if no other group has the kind."""
    kinds = [watch.resource.kind for watch in watches]
    for watch in watches:
        kind = watch.resource.kind
        yield watch, [full_name(watch.resource), kind][: 2 if kinds.count(kind) == 1 else 1]


def _notify_synced(handlers: EventHandlers, subscription: Subscription) -> None:
    """Notify a view at once of a kind that another view has synced already."""
    if subscription.informer.is_synced:
        handlers.on_synced(subscription.informer.resource.kind)


def _need(watch: WatchSpec, view: CacheView) -> Callable[[], bool]:
    needed = watch.needed

    def is_needed() -> bool:
        if needed is None:
            return True
        try:
            return needed(view)
        except Exception:
            # An unneeded watch costs memory; a missing one would hide objects that a plan depends on.
            _log.exception("watch predicate failed", resource=str(watch.resource))
            return True

    return is_needed


def expose_metrics(metrics: Metrics, informers: InformerFactory) -> None:
    """Register the gauges of all informers. Call after all watches are registered.

    They are computed when scraped, so that watch events cost nothing extra. Kinds declared later are added and removed
    automatically. The gauges of a stopped watch are 0.
    """
    gauges = [(metrics.gauge(f"nodeyard_informer_{name}", help, _LABELS), value) for name, help, value in _GAUGES]

    def show(informer: SharedInformer) -> None:
        for gauge, value in gauges:
            gauge.labels(*_labels(informer)).set_function(_reader(informer, value))

    def hide(informer: SharedInformer) -> None:
        for gauge, _ in gauges:
            gauge.remove(*_labels(informer))

    for informer in informers.all:
        show(informer)
    informers.on_watching, informers.on_dropped = show, hide


def _labels(informer: SharedInformer) -> tuple[str, str]:
    return str(informer.key), informer.resource.view.__name__


def _reader(informer: SharedInformer, value: Callable[[Report], float]) -> Callable[[], float]:
    def read() -> float:
        report = informer.report()
        return 0.0 if report is None else float(value(report))

    return read
