"""The engine: sees every change, decides which stages it concerns, and acts when their time has come.

    change ─▶ index ─▶ whom it concerns ─▶ for each of their stages: appoint, or call off
    clock ──▶ agenda ─▶ what is due ─▶ act (bounded, concurrent) ─▶ done, repeat, next, or another attempt

The work for a change depends on the stages of the kinds it concerns, not on how many objects there are.
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
from nodeyard.sim.executor import Actor, NotYet, Procedure
from nodeyard.sim.index import Entity, Index, Key, key_of
from nodeyard.sim.informer import Informer
from nodeyard.sim.kinds import ASK_AGAIN_SECONDS, Kinds
from nodeyard.sim.seeded_random import Chance
from nodeyard.sim.stage_book import Book, Stage
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.templates import Function, TemplateError
from nodeyard.sim.timers import Agenda, Appointment

IN_FLIGHT: Final = 32
_LONGEST_BACKOFF: Final = 20.0

Listener = Callable[[Kind, Object, bool], None]
"""Told of each change before stages are: kind, object, whether it is there (or gone)."""

_log = get_logger("sim")


class Engine:
    def __init__(
        self,
        client: Client,
        book: Book,
        *,
        clock: Clock,
        seed: int = 0,
        functions: Mapping[str, Function] | None = None,
        procedures: Mapping[str, Procedure] | None = None,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        self.index = Index(book)
        self.chance = Chance(seed)
        self.faults: list[str] = []
        """What a stage tried and the server refused for good: a mistake in a stage file."""
        self._client = client
        self._book = book
        self._clock = clock
        self._agenda = Agenda()
        self._kinds = Kinds(client, clock)
        self._stages: dict[Kind, list[Stage]] = defaultdict(list)
        self._named = {stage.name: stage for stage in book.stages}
        for stage in book.stages:
            self._stages[stage.kind].append(stage)
        self._times: dict[tuple[Key, str], int] = defaultdict(int)
        self._feeds: list[Informer] = []
        self._listeners: list[Listener] = []
        self._acting: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(in_flight)
        self._wake = asyncio.Event()
        self._actor = Actor(
            client, self._kinds, self.index, clock, self.chance, functions or {}, procedures or {}, self.mark
        )

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def run(self) -> None:
        """Until cancelled."""
        following = [asyncio.create_task(self._follow(kind)) for kind in self._book.kinds]
        for task in following:
            task.add_done_callback(self._noted)
        try:
            while True:
                await self._wait()
                while (appointment := self._agenda.take(self._clock.monotonic())) is not None:
                    await self._room.acquire()
                    self._begin(appointment)
        finally:
            tasks = [*following, *self._acting]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def mark(self, key: Key, mark: str, is_on: bool) -> None:
        """Note something about an object that its API server does not know."""
        self._consider(self.index.mark(key, mark, is_on=is_on))

    def follows(self, kind: Kind) -> bool:
        """Whether it will be told of objects of a kind."""
        return kind in self._book.kinds

    @property
    def is_settled(self) -> bool:
        """Everything is known, nothing is being done, and nothing will happen by itself but what repeats."""
        has_synced = len(self._feeds) == len(self._book.kinds) and all(feed.is_synced for feed in self._feeds)
        return has_synced and not self._acting and not self._agenda.one_time

    # seeing

    async def _follow(self, kind: Kind) -> None:
        while True:
            with suppress(ClientError):
                resource = await self._kinds.resource(kind)
                break
            await self._clock.sleep(ASK_AGAIN_SECONDS)
        feed = Informer(
            self._client,
            resource,
            self._clock,
            lambda obj: self._see(kind, obj),
            lambda obj: self._miss(kind, obj),
        )
        self._feeds.append(feed)
        await feed.run()

    def _see(self, kind: Kind, obj: Object) -> None:
        key = key_of(kind, obj)
        known = self.index.get(key)
        if known is not None and known.object["metadata"]["uid"] != obj["metadata"]["uid"]:
            self._miss(kind, known.object)  # deleted and made anew while we did not look
        for listener in self._listeners:
            listener(kind, obj, True)
        self._actor.seen(key)
        self._consider(self.index.put(key, obj))

    def _miss(self, kind: Kind, obj: Object) -> None:
        key = key_of(kind, obj)
        self._agenda.forget(key)
        for listener in self._listeners:
            listener(kind, obj, False)
        self._consider(self.index.remove(key))
        for stage in self._stages[kind]:
            self._times.pop((key, stage.name), None)

    # deciding

    def _consider(self, entities: list[Entity]) -> None:
        for entity in entities:
            labels = entity.object["metadata"].get("labels") or {}
            for stage in self._stages[entity.key.kind]:
                matches = stage.labels.matches(labels) and self._holds(stage, entity)
                appointment = self._agenda.get(entity, stage)
                if matches and appointment is None and stage.starts_itself:
                    self._appoint(entity, stage)
                elif matches and appointment is not None and stage.follows:
                    self._renew(appointment)
                elif not matches and appointment is not None:
                    self._agenda.call_off(entity, stage)

    def _holds(self, stage: Stage, entity: Entity) -> bool:
        try:
            return stage.where(entity)
        except (TypeError, ValueError) as error:
            self._fault(stage, entity, error)  # a comparison that makes no sense, such as a text below a number
            return False

    def _appoint(self, entity: Entity, stage: Stage) -> None:
        self._agenda.make(entity, stage, self._clock.monotonic() + self._delay(entity, stage))
        self._wake.set()

    def _renew(self, appointment: Appointment) -> None:
        due = self._clock.monotonic() + self._delay(appointment.entity, appointment.stage)
        self._agenda.renew(appointment, due)
        self._wake.set()

    def _delay(self, entity: Entity, stage: Stage) -> float:
        times = self._times[entity.key, stage.name]
        self._times[entity.key, stage.name] = times + 1
        try:
            return stage.delay(entity.object, self.chance, f"{stage.name} {entity.key}", times)
        except ValueError as error:
            self._fault(stage, entity, error)  # a field that is no duration
            return 0.0

    # acting

    async def _wait(self) -> None:
        """Until something is due, or something earlier may be."""
        self._wake.clear()
        due = self._agenda.next_due()
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

    def _begin(self, appointment: Appointment) -> None:
        task = asyncio.create_task(self._act(appointment))
        self._acting.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._acting.discard(task)
        self._room.release()
        self._wake.set()
        self._noted(task)

    def _noted(self, task: asyncio.Task[None]) -> None:
        """A task that broke is a fault of ours, not of a stage file; it must not pass in silence."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the simulation broke", exc_info=error)
            self.faults.append(repr(error))

    async def _act(self, appointment: Appointment) -> None:
        stage, entity = appointment.stage, appointment.entity
        if not self._holds(stage, entity):
            self._agenda.call_off(entity, stage)
            return
        if self._is_chosen(appointment):
            try:
                for action in stage.actions:
                    await self._actor.perform(action, entity)
            except NotYet as delay:
                self._try_again(appointment, delay)
                return
            except (ApiError, TemplateError) as error:
                self._fault(stage, entity, error)
        self._conclude(appointment)

    def _is_chosen(self, appointment: Appointment) -> bool:
        stage, key = appointment.stage, appointment.entity.key
        if stage.chance >= 1:
            return True
        return self.chance.draw("chance", stage.name, str(key), self._times[key, stage.name]) < stage.chance

    def _conclude(self, appointment: Appointment) -> None:
        stage, entity = appointment.stage, appointment.entity
        if stage.next is not None and self.index.get(entity.key) is entity:
            self._appoint(entity, self._named[stage.next])
        if not stage.repeat and not appointment.is_overtaken:
            self._agenda.finish(appointment)
            return
        appointment.attempts = 0
        self._agenda.postpone(appointment, self._clock.monotonic() + self._delay(entity, stage))

    def _try_again(self, appointment: Appointment, delay: NotYet) -> None:
        appointment.attempts += 1
        growth = 2 ** min(appointment.attempts - 1, 6) if delay.grows else 1
        after = 0.0 if appointment.is_overtaken else min(delay.after * growth, _LONGEST_BACKOFF)
        _log.debug("trying again", stage=appointment.stage.name, object=str(appointment.entity.key), after=after)
        self._agenda.postpone(appointment, self._clock.monotonic() + after)

    def _fault(self, stage: Stage, entity: Entity, error: Exception) -> None:
        text = f"stage {stage.name} on {entity.key}: {error}"
        if text not in self.faults:
            self.faults.append(text)
            _log.error("stage at fault", stage=stage.name, object=str(entity.key), reason=str(error))
