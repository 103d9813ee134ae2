"""The event recorder: writes Kubernetes Events without ever blocking or failing its caller.

`record` only counts and queues. Equal events (object, type, reason, message) form one series until ten minutes pass
without one. The first is created; the others are counted on it by a patch, several in one if they come faster than they
are written. The queue and the number of known series are bounded. Events that do not fit or that the server refuses are
counted in `lost`.

Events are `events.k8s.io/v1`, not the core group's: that version has a series (count and last time) for repeated events
on one object and names the controller and its instance, and the server validates it. `kubectl describe` and `kubectl
get events` show both alike, since they share one store.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from random import Random
from typing import Final, TypeAlias

import msgspec

from nodeyard.apply.retry import RETRY_POLICY
from nodeyard.client.api import Client
from nodeyard.client.decoder import Partial
from nodeyard.client.errors import AlreadyExists, ClientError, NotFound
from nodeyard.client.resources import EVENTS
from nodeyard.kube.json import Object
from nodeyard.kube.names import GROUP
from nodeyard.kube.timestamps import format_rfc3339_micro
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

NOTE_MAX: Final = 1024
WORDS_MAX: Final = 128
_NAME_MAX = 220
_CUT = "..."
# The only namespace for Events about cluster-scoped objects.
_CLUSTER_NAMESPACE = "default"

WINDOW: Final = timedelta(minutes=10)
QUEUE_SIZE: Final = 4096
SERIES_MAX: Final = 4096
LOG_EVERY: Final = 1000
"""The first lost event is logged, and then every this many."""

_EVENTS: Final = EVENTS.decoded_as(Partial)

log = get_logger("recorder")

_Identity: TypeAlias = tuple[ObjectRef, str, str, str]


@dataclass(frozen=True)
class Event:
    """A Kubernetes Event to record; equal events within ten minutes are counted, not repeated."""

    object: ObjectRef
    type: str
    reason: str
    message: str
    is_standing: bool = False
    """The event describes a lasting state: every pass returns it, and it is recorded only when the state changes."""


def namespace_of(ref: ObjectRef) -> str:
    """Return the namespace of the Event. An object of a remote cluster has no namespace on the host cluster."""
    return _CLUSTER_NAMESPACE if ref.cluster else ref.namespace or _CLUSTER_NAMESPACE


def name_of(event: Event, moment: datetime, instance: str) -> str:
    """Return a unique, valid name, whatever the name of the object is."""
    identity = (event.object, event.type, event.reason, event.message, instance, moment.isoformat())
    return f"{event.object.name[:_NAME_MAX].rstrip('-.')}.{sha256(repr(identity).encode()).hexdigest()[:16]}"


def event_object(event: Event, name: str, moment: datetime, capability: str, instance: str) -> Object:
    ref = event.object
    about = {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name}
    note = event.message
    if ref.cluster:
        note = f"{ref}: {note}"
    elif ref.namespace:
        about["namespace"] = ref.namespace
    if ref.uid:
        about["uid"] = ref.uid
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace_of(ref)},
        "eventTime": format_rfc3339_micro(moment),
        "type": event.type,
        "reason": event.reason[:WORDS_MAX],
        "action": event.reason[:WORDS_MAX],
        "note": _note(note),
        "regarding": about,
        "reportingController": f"{GROUP}/{capability}",
        "reportingInstance": instance[:WORDS_MAX],
    }


def series_object(count: int, last: datetime) -> Object:
    return {"count": count, "lastObservedTime": format_rfc3339_micro(last)}


def _note(message: str) -> str:
    encoded = message.encode()
    if len(encoded) <= NOTE_MAX:
        return message
    return encoded[: NOTE_MAX - len(_CUT)].decode(errors="ignore") + _CUT


@dataclass
class _Series:
    """Equal events: how many occurred, and how many the server knows of."""

    event: Event
    first: datetime
    last: datetime
    name: str
    count: int = 1
    written: int = 0
    is_queued: bool = False


class Recorder:
    """`run` writes recorded events until it is cancelled; `drain` writes the rest at shutdown."""

    def __init__(
        self,
        client: Client,
        capability: str,
        *,
        instance: str,
        clock: Clock,
        queue_size: int = QUEUE_SIZE,
        random: Random | None = None,
    ) -> None:
        self.lost = 0
        self._client = client.managed_by(f"nodeyard-{capability}", f"nodeyard-{capability}/events")
        self._capability = capability
        self._instance = instance
        self._clock = clock
        self._random = random or Random()
        self._series: OrderedDict[_Identity, _Series] = OrderedDict()
        self._queue: asyncio.Queue[_Series] = asyncio.Queue(queue_size)

    def record(self, event: Event) -> None:
        """Queue an event; never waits and never fails."""
        key = _identity_of(event)
        now = self._clock.now()
        series = self._series.get(key)
        if series is not None and now - series.last <= WINDOW:
            series.count += 1
            series.last = now
        else:
            series = _Series(event, now, now, name_of(event, now, self._instance))
            self._series[key] = series
        self._series.move_to_end(key)
        self._forget(now)
        self._enqueue(series)

    async def run(self) -> None:
        while True:
            series = await self._queue.get()
            try:
                await self._write_or_drop(series)
            except asyncio.CancelledError:
                # Left for `drain`. If the server already has it, its name prevents a duplicate.
                self._enqueue(series)
                raise

    async def drain(self) -> None:
        while not self._queue.empty():
            await self._write_or_drop(self._queue.get_nowait())

    def _forget(self, now: datetime) -> None:
        """Drop the series that have ended, the oldest first, and those above the limit."""
        while len(self._series) > SERIES_MAX or now - next(iter(self._series.values())).last > WINDOW:
            self._series.popitem(last=False)

    def _enqueue(self, series: _Series) -> None:
        if series.is_queued:
            return
        try:
            self._queue.put_nowait(series)
            series.is_queued = True
        except asyncio.QueueFull:
            self.lost += 1
            if self.lost % LOG_EVERY == 1:
                log.warning(
                    "events dropped",
                    reason="the queue is full: events arrive faster than they are written",
                    lost=self.lost,
                )

    async def _write_or_drop(self, series: _Series) -> None:
        series.is_queued = False
        try:
            await RETRY_POLICY.run(partial(self._write, series), self._clock, self._random)
        except (ClientError, msgspec.MsgspecError) as error:
            self.lost += 1
            log.warning("event dropped", object=str(series.event.object), error=str(error))

    async def _write(self, series: _Series) -> None:
        count = series.count
        if series.written and not await self._count(series, count):
            # The server has expired it: by default Events live for an hour.
            series.name = name_of(series.event, self._clock.now(), self._instance)
            series.written = 0
        if not series.written:
            await self._create(series, count)
        series.written = count

    async def _create(self, series: _Series, count: int) -> None:
        body = event_object(series.event, series.name, series.first, self._capability, self._instance)
        if count > 1:
            body["series"] = series_object(count, series.last)
        try:
            await self._client.create(_EVENTS, body)
        except AlreadyExists:
            # An earlier attempt succeeded, but its response was lost.
            series.written = count

    async def _count(self, series: _Series, count: int) -> bool:
        """Update the series count; return False if the Event no longer exists."""
        namespace = namespace_of(series.event.object)
        patch = {"series": series_object(count, series.last)}
        try:
            await self._client.patch(_EVENTS, series.name, patch, namespace)
        except NotFound:
            return False
        return True


class StandingEvents:
    """Edge-triggered events: an event about a lasting state is recorded when the state begins, not in every pass.

    Each pass passes the events of all states that hold now. An event that the previous pass of the key had with the
    same text is dropped. A state that ended and returns is recorded again.
    """

    def __init__(self) -> None:
        self._recorded: dict[str, frozenset[_Identity]] = {}

    def new(self, key: str, events: Iterable[Event]) -> list[Event]:
        """Return the events that the previous pass of the key did not have."""
        now = {_identity_of(each): each for each in events}
        before = self._recorded.get(key, frozenset())
        self._recorded[key] = frozenset(now)
        return [each for identity, each in now.items() if identity not in before]

    def forget(self, key: str) -> None:
        self._recorded.pop(key, None)


def _identity_of(event: Event) -> _Identity:
    return (event.object, event.type, event.reason, event.message)
