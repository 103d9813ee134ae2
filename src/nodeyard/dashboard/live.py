"""Live state of the page: tiles, and what capabilities say of attention, rollouts and places.

informers ──▶ Live ──▶ Feed, History
               ├─ TileBoard     every 250 ms, the marked nodes
               ├─ surfaces      every second, the capabilities whose caches changed
               ├─ LivePlanner   every second, the marked keys
               └─ Recorder      every second, what has happened
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from nodeyard.client.resources import EVENTS, of_kind
from nodeyard.dashboard.feed import ATTENTION, PLACES, ROLLOUTS, Feed, Visible
from nodeyard.dashboard.history import History
from nodeyard.dashboard.planner import LivePlanner
from nodeyard.dashboard.recorder import Event, Recorder, write_of
from nodeyard.dashboard.tiles import NODE_WATCH, TileBoard
from nodeyard.kube.conditions import TRUE
from nodeyard.kube.names import GROUP
from nodeyard.plan.model import ObjectRef
from nodeyard.plan.reasons import EngineReason
from nodeyard.process.aio import first_of
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.annotations import ref_of
from nodeyard.runtime.capability import Capability, Key, Watch
from nodeyard.runtime.reconcile.observe_only import BLOCKED
from nodeyard.runtime.reconcile.plan_executor import PlanExecutor
from nodeyard.runtime.surface import Attention, Severity, Surface
from nodeyard.watch.cache import Change
from nodeyard.watch.informers import InformerFactory
from nodeyard.watch.shared_informer import full_name
from nodeyard.watch.subscription import EventHandlers
from nodeyard.watch.view import CacheView

TILE_SECONDS: Final = 0.25
TILES_AT_ONCE: Final = 500
SURFACE_SECONDS: Final = 1.0
RECORDER_SECONDS: Final = 1.0
RECORDED_AT_ONCE: Final = 500
AGEING_SECONDS: Final = 15.0
"""Some of what capabilities say changes with time alone, such as the age of a lease."""
SYNC_SECONDS: Final = 5.0
MAX_ROUNDS: Final = 16
"""Bound on the chain of owners whose kinds an explanation needs."""

_log = get_logger("dashboard")


class Live:
    def __init__(
        self,
        watches: InformerFactory,
        capabilities: Sequence[Capability],
        clock: Clock,
        *,
        is_led: Callable[[str, Key], bool] = lambda _capability, _key: False,
        executor: PlanExecutor | None = None,
    ) -> None:
        """Register views of our own on the informers; call it before they are synced, or after."""
        self._clock = clock
        self._watches = watches
        self.feed = Feed(clock)
        self.history = History(self.feed.now)
        self.recorder = Recorder(clock, [each.name for each in capabilities])
        self.nodes = watches.register((NODE_WATCH,))
        self.views: dict[str, tuple[Capability, CacheView]] = {}
        self.on_view_change: dict[str, Callable[[], None]] = {}
        """Called after each change of a capability's view, by its name."""
        self._changed: set[str] = set()
        self._tiles_marked = asyncio.Event()
        self._surfaces_marked = asyncio.Event()
        self._refused: dict[str, dict[tuple[str, str, str], Attention]] = {}
        for capability in capabilities:
            self.views[capability.name] = capability, self._register(watches, capability)
        self.board = TileBoard(self.nodes, tuple(self.views.values()), self._tiles_marked.set)
        self.feed.rows = self.board.rows
        self.planner = LivePlanner(self.views, self.feed, clock, is_led=is_led, executor=executor)
        for capability, view in self.views.values():
            self._follow_roots(capability, view)

    def _register(self, watches: InformerFactory, capability: Capability) -> CacheView:
        name = capability.name

        def on_change() -> None:
            self._changed.add(name)
            self._surfaces_marked.set()
            if (refresh := self.on_view_change.get(name)) is not None:
                refresh()

        def on_synced(_kind: str) -> None:
            self.planner.mark_all(name)
            self.board.mark_all()
            on_change()

        handlers = EventHandlers(
            on_key=lambda key, _change, _watch: self.planner.mark(name, key),
            on_synced=on_synced,
            on_change=(on_change,),
            on_unmapped=lambda: self.planner.mark_all(name),
        )
        dynamic = capability.dynamic

        def with_view(watch: Watch) -> Watch:
            map_with_view = watch.map_with_view
            if map_with_view is None:
                return watch
            return replace(watch, keys=lambda old, new: map_with_view(self.views[name][1], old, new))

        def declared(view: CacheView) -> Iterable[Watch]:
            return () if dynamic is None else map(with_view, dynamic.watches(view))

        return watches.register(
            tuple(map(with_view, capability.watches)),
            capability.aggregates,
            handlers,
            declared=None if dynamic is None else declared,
        )

    async def run(self) -> None:
        """Follow until cancelled."""
        self.planner.mark_all()
        self.board.mark_all()
        self._changed |= set(self.views)
        self._surfaces_marked.set()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.planner.run(), name="dashboard plans")
            tasks.create_task(self._follow_tiles(), name="dashboard tiles")
            tasks.create_task(self._follow_surfaces(), name="dashboard surfaces")
            tasks.create_task(self._follow_recorder(), name="dashboard recorder")

    def close(self) -> None:
        self.planner.close()

    async def watch_kinds_of(self, ref: ObjectRef, visible: Visible) -> None:
        """Watch the kinds that only the explanation of this object needs, and wait a moment for their objects."""
        for _ in range(MAX_ROUNDS):
            unwatched = [
                (view, pair)
                for name, (capability, view) in self.views.items()
                if visible is None or name in visible
                for pair in capability.explain.kinds(view, ref)
                if pair not in view.recent_kinds
            ]
            if not unwatched:
                return
            for view, (api_version, kind) in unwatched:
                view.record_lookup(of_kind(api_version, kind))
            await first_of(self._watches.wait_for_sync(), self._clock.sleep(SYNC_SECONDS))

    # tiles

    async def _follow_tiles(self) -> None:
        is_started = False
        while True:
            await self._tiles_marked.wait()
            await self._clock.sleep(TILE_SECONDS)
            self._tiles_marked.clear()
            while self.board.is_marked:
                changed, deleted = self.board.refresh(self._clock.now(), TILES_AT_ONCE)
                if changed or deleted:
                    self.feed.publish_nodes(changed, deleted)
                    self.history.record(self.feed.now, changed, deleted)
                await asyncio.sleep(0)
            if not is_started and self.nodes.is_synced("Node.core"):
                # Objects of the first list are no change.
                is_started = True
                self.history.start(self.board.rows.values(), self.feed.now)

    # attention, rollouts and places

    async def _follow_surfaces(self) -> None:
        while True:
            await first_of(self._surfaces_marked.wait(), self._clock.sleep(AGEING_SECONDS))
            if not self._surfaces_marked.is_set():
                self._changed |= set(self.views)
            await self._clock.sleep(SURFACE_SECONDS)
            self._surfaces_marked.clear()
            changed, self._changed = self._changed, set()
            for name in sorted(changed):
                capability, view = self.views[name]
                self.feed.publish(ATTENTION, name, list(self._refused.get(name, {}).values()), by="refused")
                if capability.surface is not None and all(map(view.is_synced, _vital_kinds(capability))):
                    self._publish_surface(name, capability.surface, view)
                # Other tasks run between the capabilities.
                await asyncio.sleep(0)

    def _publish_surface(self, name: str, surface: Surface, view: CacheView) -> None:
        now = self._clock.now()
        with _logged(name, ATTENTION):
            self.feed.publish(ATTENTION, name, list(surface.attention(view, now)))
        with _logged(name, ROLLOUTS):
            self.feed.publish(ROLLOUTS, name, [self.recorder.explain(each) for each in surface.rollouts(view, now)])
        with _logged(name, PLACES):
            places = surface.places(view, now)
            self.recorder.observe_places(name, places)
            self.feed.publish(PLACES, name, places)

    # the recorder

    def observe_events(self) -> None:
        """Record the Events of operators elsewhere, whose passes this process does not see."""
        for name in self.views:
            watch = Watch(EVENTS.decoded_as(Event), field_selector=f"reportingController={GROUP}/{name}")
            view = self._watches.register((watch,))

            def on_change(change: Change[Event], name: str = name) -> None:
                if change.new is not None:
                    self.recorder.record_event(write_of(change.new, name, self.feed.now))

            view.listen(full_name(watch.resource), on_change)

    async def _follow_recorder(self) -> None:
        while True:
            await self._clock.sleep(RECORDER_SECONDS)
            is_left = True
            while is_left:
                is_left = self.recorder.drain(RECORDED_AT_ONCE)
                await asyncio.sleep(0)
            if entries := self.recorder.entries():
                self.feed.publish_entries(entries)

    # root objects

    def _follow_roots(self, capability: Capability, view: CacheView) -> None:
        """Follow the condition Blocked and the approvals of the root objects, in constant time per change."""
        found = self._refused[capability.name] = {}
        for kind in capability.kinds:
            name = full_name(kind.resource)

            def on_change(change: Change[Any], kind: Any = kind.resource) -> None:
                self.recorder.observe_approvals(capability.name, change.old, change.new)
                at = (kind.kind, *change.key)
                refusal = None if change.new is None else _refusal(change.new, kind.api_version, kind.kind)
                if refusal is not None:
                    found[at] = refusal
                else:
                    found.pop(at, None)

            try:
                view.listen(name, on_change)
            except KeyError:
                # The kind is declared at run time.
                continue


def _refusal(obj: Any, api_version: str, kind: str) -> Attention | None:
    status = None if isinstance(obj, Mapping) else getattr(obj, "status", None)
    for condition in getattr(status, "conditions", ()):
        if (condition.type, condition.status, condition.reason) == (BLOCKED, TRUE, EngineReason.ADMISSION_DENIED):
            return Attention(
                kind="Refused",
                severity=Severity.WARNING,
                object=ref_of(obj, api_version, kind),
                reason=condition.reason,
                message=condition.message,
                since=condition.last_transition_time,
            )
    return None


def _vital_kinds(capability: Capability) -> Iterator[str]:
    return (full_name(watch.resource) for watch in capability.watches if watch.needed is None)


@contextmanager
def _logged(capability: str, section: str) -> Iterator[None]:
    """Log an exception of a capability's surface; the rest of the page goes on."""
    try:
        yield
    except Exception:
        _log.exception("surface failed", capability=capability, section=section)
