"""Records Kubernetes Events, and never gets in anyone's way.

`record` only counts and queues. Equal events (object, type, reason, message) are one series as long as no ten minutes
pass between two of them: the first is created, the others are counted on it by a patch, several in one where they come
faster than they are written. The queue and the series known are bounded; what does not fit, and what the server will
not take, is counted in `lost`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final

import msgspec

from nodeyard.apply.events import Occurrence, event_object, name_of, namespace_of, series_object
from nodeyard.apply.patience import Patience, asked_pause, is_trouble
from nodeyard.client.api import Client
from nodeyard.client.decoding import Partial
from nodeyard.client.errors import AlreadyExists, ClientError, NotFound
from nodeyard.client.resources import EVENTS
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

WINDOW: Final = timedelta(minutes=10)
QUEUE_SIZE: Final = 4096
SERIES_MAX: Final = 4096
TOLD_EVERY: Final = 1000
"""Of events that do not fit, the first and then every so many are told of in the log."""

_EVENTS: Final = EVENTS.decoded_as(Partial)

log = get_logger("recorder")


@dataclass
class _Series:
    """Equal events: how many there were, and how many the server knows of."""

    occurrence: Occurrence
    first: datetime
    last: datetime
    name: str
    count: int = 1
    written: int = 0
    is_queued: bool = False


class Recorder:
    """`run` writes what `record` was given, until it is cancelled; `drain` writes what is left then."""

    def __init__(
        self,
        client: Client,
        capability: str,
        *,
        instance: str,
        clock: Clock,
        queue_size: int = QUEUE_SIZE,
        patience: Patience | None = None,
        random: Random | None = None,
    ) -> None:
        self.lost = 0
        self._client = client.managed_by(f"nodeyard-{capability}")
        self._capability = capability
        self._instance = instance
        self._clock = clock
        self._patience = patience or Patience()
        self._random = random or Random()
        self._series: OrderedDict[tuple[ObjectRef, str, str, str], _Series] = OrderedDict()
        self._queue: asyncio.Queue[_Series] = asyncio.Queue(queue_size)

    def record(self, occurrence: Occurrence) -> None:
        """Never waits and never fails."""
        key = (occurrence.object, occurrence.type, occurrence.reason, occurrence.message)
        now = self._clock.now()
        series = self._series.get(key)
        if series is not None and now - series.last <= WINDOW:
            series.count += 1
            series.last = now
        else:
            series = _Series(occurrence, now, now, name_of(occurrence, now, self._instance))
            self._series[key] = series
        self._series.move_to_end(key)
        if len(self._series) > SERIES_MAX:
            self._series.popitem(last=False)
        self._enqueue(series)

    async def run(self) -> None:
        while True:
            series = await self._queue.get()
            try:
                await self._take(series)
            except asyncio.CancelledError:
                # Left for whoever drains; one that arrived nonetheless has its name and is not made twice.
                self._enqueue(series)
                raise

    async def drain(self) -> None:
        while not self._queue.empty():
            await self._take(self._queue.get_nowait())

    def _enqueue(self, series: _Series) -> None:
        if series.is_queued:
            return
        try:
            self._queue.put_nowait(series)
            series.is_queued = True
        except asyncio.QueueFull:
            self.lost += 1
            if self.lost % TOLD_EVERY == 1:
                log.warning("events are lost", reason="they come faster than they are written", lost=self.lost)

    async def _take(self, series: _Series) -> None:
        series.is_queued = False
        try:
            await self._persist(series)
        except (ClientError, msgspec.MsgspecError) as error:
            self.lost += 1
            log.warning("an event is lost", object=str(series.occurrence.object), error=str(error))

    async def _persist(self, series: _Series) -> None:
        failures = 0
        while True:
            try:
                return await self._write(series)
            except ClientError as error:
                failures += 1
                pause = self._patience.pause(failures, asked_pause(error), self._random)
                if pause is None or not is_trouble(error):
                    raise
            await self._clock.sleep(pause)

    async def _write(self, series: _Series) -> None:
        count = series.count
        if series.written and not await self._count(series, count):
            # The server has forgotten it: it keeps events for an hour.
            series.name = name_of(series.occurrence, self._clock.now(), self._instance)
            series.written = 0
        if not series.written:
            await self._create(series, count)
        series.written = count

    async def _create(self, series: _Series, count: int) -> None:
        event = event_object(series.occurrence, series.name, series.first, self._capability, self._instance)
        if count > 1:
            event["series"] = series_object(count, series.last)
        try:
            await self._client.create(_EVENTS, event)
        except AlreadyExists:
            # An earlier attempt had arrived without an answer.
            series.written = count

    async def _count(self, series: _Series, count: int) -> bool:
        """Whether the event was there to be counted on."""
        namespace = namespace_of(series.occurrence.object)
        patch = {"series": series_object(count, series.last)}
        try:
            await self._client.patch(_EVENTS, series.name, patch, namespace)
        except NotFound:
            return False
        return True
