"""Engine of the simulation: starts a timer when an object begins to match a stage, and acts when it is due.

    change ─▶ index ─▶ concerned objects ─▶ for each of their stages: start or cancel a timer
    clock ──▶ timers ─▶ due timers ─▶ execute (bounded, concurrent) ─▶ done, repeat, next stage, or retry

The work per change depends on the stages of the kinds it concerns, not on the number of objects.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.errors import ApiError, ClientError
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.sim.executor import Executor, Requeue
from nodeyard.sim.index import Entity, Index, Key, key_of
from nodeyard.sim.informer import Informer
from nodeyard.sim.rest_mapper import DISCOVERY_SECONDS, LazyRESTMapper
from nodeyard.sim.seeded_random import SeededRandom
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.stage_set import Stage, StageSet
from nodeyard.sim.templates import Function, TemplateError
from nodeyard.sim.timers import Timer, Timers

MAX_IN_FLIGHT: Final = 32
_LONGEST_BACKOFF: Final = 20.0

Listener = Callable[[Kind, Object, bool], None]
"""Called for each change before the stages: kind, object, whether it exists (False: it was deleted)."""

_log = get_logger("sim")


class Engine:
    def __init__(
        self,
        client: Client,
        stages: StageSet,
        *,
        clock: Clock,
        seed: int = 0,
        functions: Mapping[str, Function] | None = None,
    ) -> None:
        self.index = Index(stages)
        self.random = SeededRandom(seed)
        self.errors: list[str] = []
        """Errors of stages that a retry does not help, such as a request that the server refused."""
        self._client = client
        self.stages = stages
        self._clock = clock
        self._timers = Timers()
        self._mapper = LazyRESTMapper(client, clock)
        self._stages: dict[Kind, list[Stage]] = defaultdict(list)
        self._named = {stage.name: stage for stage in stages.stages}
        for stage in stages.stages:
            self._stages[stage.kind].append(stage)
        self._draws: dict[tuple[Key, str], int] = defaultdict(int)
        self._informers: list[Informer] = []
        self._listeners: list[Listener] = []
        self._acting: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._wake = asyncio.Event()
        self._executor = Executor(client, self._mapper, self.index, clock, self.random, functions or {}, self.mark)

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def run(self) -> None:
        """Simulate until cancelled."""
        informers = [asyncio.create_task(self._follow(kind)) for kind in self.stages.kinds]
        for task in informers:
            task.add_done_callback(self._record_crash)
        try:
            while True:
                await self._wait()
                while (timer := self._timers.take(self._clock.monotonic())) is not None:
                    await self._slots.acquire()
                    self._begin(timer)
        finally:
            tasks = [*informers, *self._acting]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def mark(self, key: Key, mark: str, is_on: bool) -> None:
        """Set or clear a mark: something about an object that the API server does not know."""
        self._consider(self.index.mark(key, mark, is_on=is_on))

    def follows(self, kind: Kind) -> bool:
        """Return whether objects of a kind are watched."""
        return kind in self.stages.kinds

    @property
    def is_settled(self) -> bool:
        """Return True if all kinds are synced, nothing is running, and only repeating stages have timers."""
        has_synced = len(self._informers) == len(self.stages.kinds) and all(each.is_synced for each in self._informers)
        return has_synced and not self._acting and not self._timers.one_time

    # changes

    async def _follow(self, kind: Kind) -> None:
        while True:
            with suppress(ClientError):
                resource = await self._mapper.find(kind)
                break
            await self._clock.sleep(DISCOVERY_SECONDS)
        informer = Informer(
            self._client,
            resource,
            self._clock,
            lambda obj: self._on_update(kind, obj),
            lambda obj: self._on_delete(kind, obj),
        )
        self._informers.append(informer)
        await informer.run()

    def _on_update(self, kind: Kind, obj: Object) -> None:
        key = key_of(kind, obj)
        known = self.index.get(key)
        if known is not None and known.object["metadata"]["uid"] != obj["metadata"]["uid"]:
            self._on_delete(kind, known.object)  # deleted and recreated while the watch was down
        for listener in self._listeners:
            listener(kind, obj, True)
        self._executor.seen(key)
        self._consider(self.index.put(key, obj))

    def _on_delete(self, kind: Kind, obj: Object) -> None:
        key = key_of(kind, obj)
        self._timers.cancel_all(key)
        for listener in self._listeners:
            listener(kind, obj, False)
        self._consider(self.index.remove(key))
        for stage in self._stages[kind]:
            self._draws.pop((key, stage.name), None)

    # matching

    def _consider(self, entities: list[Entity]) -> None:
        for entity in entities:
            labels = entity.object["metadata"].get("labels") or {}
            for stage in self._stages[entity.key.kind]:
                matches = stage.labels.matches(labels) and self._holds(stage, entity)
                timer = self._timers.get(entity, stage)
                if matches and timer is None and stage.starts_itself:
                    self._start_timer(entity, stage)
                elif matches and timer is not None and stage.follows_changes:
                    self._note_change(timer)
                elif not matches and timer is not None:
                    self._timers.cancel(entity, stage)

    def _holds(self, stage: Stage, entity: Entity) -> bool:
        try:
            return stage.where(entity)
        except (TypeError, ValueError) as error:
            self._record_error(stage, entity, error)  # a comparison of different types, such as a string below a number
            return False

    def _start_timer(self, entity: Entity, stage: Stage) -> None:
        self._timers.start(entity, stage, self._clock.monotonic() + self._delay(entity, stage))
        self._wake.set()

    def _note_change(self, timer: Timer) -> None:
        due = self._clock.monotonic() + self._delay(timer.entity, timer.stage)
        self._timers.note_change(timer, due)
        self._wake.set()

    def _delay(self, entity: Entity, stage: Stage) -> float:
        times = self._draws[entity.key, stage.name]
        self._draws[entity.key, stage.name] = times + 1
        try:
            return stage.delay(entity.object, self.random, f"{stage.name} {entity.key}", times)
        except ValueError as error:
            self._record_error(stage, entity, error)  # a field that is not a duration
            return 0.0

    # acting

    async def _wait(self) -> None:
        """Sleep until the next timer is due or an earlier one may have been started."""
        self._wake.clear()
        due = self._timers.next_due()
        if due is None:
            await self._wake.wait()
            return
        left = due - self._clock.monotonic()
        if left <= 0:
            return
        sleeping = asyncio.ensure_future(self._clock.sleep(left))
        waking = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait((sleeping, waking), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            waking.cancel()

    def _begin(self, timer: Timer) -> None:
        task = asyncio.create_task(self._act(timer))
        self._acting.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._acting.discard(task)
        self._slots.release()
        self._wake.set()
        self._record_crash(task)

    def _record_crash(self, task: asyncio.Task[None]) -> None:
        """Record an exception that no stage file can cause."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("simulation failed", exc_info=error)
            self.errors.append(repr(error))

    async def _act(self, timer: Timer) -> None:
        stage, entity = timer.stage, timer.entity
        if not self._holds(stage, entity):
            self._timers.cancel(entity, stage)
            return
        if self._is_drawn(timer):
            try:
                for action in stage.actions:
                    await self._executor.execute(action, entity)
            except Requeue as requeue:
                self._retry(timer, requeue)
                return
            except (ApiError, TemplateError) as error:
                self._record_error(stage, entity, error)
        self._conclude(timer)

    def _is_drawn(self, timer: Timer) -> bool:
        stage, key = timer.stage, timer.entity.key
        if stage.chance >= 1:
            return True
        return self.random.random("chance", stage.name, str(key), self._draws[key, stage.name]) < stage.chance

    def _conclude(self, timer: Timer) -> None:
        stage, entity = timer.stage, timer.entity
        if stage.next is not None and self.index.get(entity.key) is entity:
            self._start_timer(entity, self._named[stage.next])
        if not stage.repeat and not timer.has_changed:
            self._timers.finish(timer)
            return
        timer.attempts = 0
        self._timers.restart(timer, self._clock.monotonic() + self._delay(entity, stage))

    def _retry(self, timer: Timer, requeue: Requeue) -> None:
        timer.attempts += 1
        growth = 2 ** min(timer.attempts - 1, 6) if requeue.has_backoff else 1
        after = 0.0 if timer.has_changed else min(requeue.after * growth, _LONGEST_BACKOFF)
        _log.debug("stage requeued", stage=timer.stage.name, object=str(timer.entity.key), after=after)
        self._timers.restart(timer, self._clock.monotonic() + after)

    def _record_error(self, stage: Stage, entity: Entity, error: Exception) -> None:
        text = f"stage {stage.name} on {entity.key}: {error}"
        if text not in self.errors:
            self.errors.append(text)
            _log.error("stage failed", stage=stage.name, object=str(entity.key), error=str(error))
