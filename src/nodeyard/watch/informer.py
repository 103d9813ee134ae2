"""Keeps one cache equal to one kind on the server: tells it everything once, then every change.

`phases` is the table of what follows what; here is what each phase does. `run` goes on until it is cancelled, whatever
happens: a watch that dies silently is the worst a controller can have.

The reader waits for the network and for nothing else: it decodes, stores and goes on, since a server cuts off whoever
reads too slowly. Everything else (planning, writing, discovery) happens elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Generic, TypeVar

from nodeyard.client.api import IDLE_SECONDS, Client, Event
from nodeyard.client.decoding import Malformed
from nodeyard.client.errors import (
    ApiError,
    BadRequest,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerError,
    TransportTimeout,
)
from nodeyard.client.resources import Resource
from nodeyard.client.watching import Bookmark, Change
from nodeyard.kube.identity import Key, identity_of
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.watch.backoff import Backoff
from nodeyard.watch.cache import Cache
from nodeyard.watch.phases import Happening, Phase, State, after
from nodeyard.watch.sources import Source

T = TypeVar("T")

# The server ends a watch after this many seconds; spread, so that not all of them come back at once.
WATCH_SECONDS: Final = (300, 600)
# Two bookmarks missed and the silence found out: whoever asks should know by then.
STALLED_SECONDS: Final = 150.0
# A stream that ends sooner than this and said nothing is trouble, not the server's habit.
SHORTEST_WATCH_SECONDS: Final = 1.0
# Stands in an error that is a missing right: that one does not pass by itself.
FORBIDDEN: Final = ": forbidden: "
# After so many events in one go the event loop gets a turn.
BURST: Final = 256

_log = get_logger("informer")


class EndedTooSoon(Exception):
    """The server ended a stream that had not said what it was opened for."""


@dataclass(frozen=True, slots=True)
class Report:
    """How an informer is doing: for readiness, metrics and the dashboard."""

    source: str
    phase: str
    is_synced: bool
    is_stalled: bool
    silence: float
    """Seconds since anything was heard."""
    restarts: int
    objects: int
    malformed: int
    unconfirmed: int
    error: str


class Informer(Generic[T]):
    def __init__(
        self,
        client: Client,
        source: Source,
        cache: Cache[T],
        clock: Clock,
        random: Random,
        *,
        on_synced: Callable[[], None] = lambda: None,
        on_missing: Callable[[], None] = lambda: None,
        on_trouble: Callable[[], None] = lambda: None,
        backoff: Backoff | None = None,
        idle_timeout: float = IDLE_SECONDS,
    ) -> None:
        self.source = source
        self.cache = cache
        self.state = State()
        self.is_synced = False
        self.restarts = 0
        """How often the watch broke or had to begin anew; a stream that ends in its time is none."""
        self.error = ""
        """What last went wrong; empty while all is well."""
        self._client = client
        self._resource: Resource[T] = source.decoded
        self._key: Callable[[Any], Key] = identity_of(self._resource.view).key
        self._clock = clock
        self._random = random
        self._on_synced = on_synced
        self._on_missing = on_missing
        self._on_trouble = on_trouble
        self._backoff = backoff or Backoff()
        self._idle_timeout = idle_timeout
        self._heard_at = clock.monotonic()

    @property
    def silence(self) -> float:
        return self._clock.monotonic() - self._heard_at

    @property
    def is_stalled(self) -> bool:
        """Whether the cache may be out of date by more than a reader should accept."""
        return self.silence > STALLED_SECONDS

    def report(self) -> Report:
        return Report(
            source=str(self.source),
            phase=self.state.phase.value,
            is_synced=self.is_synced,
            is_stalled=self.is_stalled,
            silence=self.silence,
            restarts=self.restarts,
            objects=len(self.cache),
            malformed=len(self.cache.malformed),
            unconfirmed=self.cache.unconfirmed,
            error=self.error,
        )

    def resume(self) -> None:
        """Before it runs: the cache is what this very server has told, so only what changed since is asked for."""
        self.state = State(phase=Phase.WATCHING)
        self.is_synced = True

    async def run(self) -> None:
        """Until cancelled."""
        self._heard_at = self._clock.monotonic()
        retry_after = 0.0
        try:
            while True:
                if self.state.phase is Phase.WAITING:
                    wait = self._backoff.seconds(self.state.failures, self._random, retry_after)
                    await self._clock.sleep(wait)
                    self._move(Happening.RESTED)
                    continue
                retry_after = 0.0
                try:
                    happening = await self._work()
                except Exception as error:
                    happening = _happening(self.state.phase, error)
                    retry_after = getattr(error, "retry_after", None) or 0.0
                    self._note(error, happening)
                self._move(happening)
        finally:
            self._move(Happening.STOPPED)

    async def _work(self) -> Happening:
        if self.state.phase is Phase.LISTING:
            return await self._list()
        return await self._watch()

    async def _list(self) -> Happening:
        page = await self._client.list(
            self._resource, labels=self.source.label_selector, fields=self.source.field_selector
        )
        self._hear()
        self._tell(page.items, page.resource_version, page.malformed)
        return Happening.TOLD

    async def _watch(self) -> Happening:
        is_streaming = self.state.phase is Phase.STREAMING
        begun = self._clock.monotonic()
        async with self._client.watch(
            self._resource,
            labels=self.source.label_selector,
            fields=self.source.field_selector,
            resource_version="" if is_streaming else self.cache.version,
            initial_events=is_streaming,
            seconds=self._random.randint(*WATCH_SECONDS),
            idle_timeout=self._idle_timeout,
        ) as events:
            if is_streaming:
                await self._take_everything(events)
            heard = await self._follow(events)
        if not heard and not is_streaming and self._clock.monotonic() - begun < SHORTEST_WATCH_SECONDS:
            raise EndedTooSoon("the stream ended at once")
        return Happening.ENDED

    async def _take_everything(self, events: AsyncIterator[Event[T]]) -> None:
        """The streamed list, set apart until it is whole."""
        objects: dict[Key, T] = {}
        malformed: dict[Key, Malformed] = {}
        async for event in events:
            self._hear()
            if isinstance(event, Change):
                key = self._key(event.object)
                malformed.pop(key, None)
                if event.type == "DELETED":
                    objects.pop(key, None)
                else:
                    objects[key] = event.object
            elif isinstance(event, Malformed):
                objects.pop((event.namespace, event.name), None)
                malformed[event.namespace, event.name] = event
            elif event.ends_initial_events:
                self._tell(list(objects.values()), event.resource_version, tuple(malformed.values()))
                self._move(Happening.TOLD)
                return
        raise EndedTooSoon("the stream ended before everything was told")

    async def _follow(self, events: AsyncIterator[Event[T]]) -> int:
        """Changes as they come, until the server ends the stream; how many there were."""
        heard = 0
        deliver = self.cache.deliver
        async for event in events:
            self._hear()
            heard += 1
            if isinstance(event, Change):
                deliver(event.object, is_deleted=event.type == "DELETED")
            elif isinstance(event, Bookmark):
                self.cache.pass_version(event.resource_version)
            else:
                self.cache.set_aside(event)
            if heard == 1:
                self._recover()
                self._move(Happening.HEARD)
            if heard % BURST == 0:
                await asyncio.sleep(0)
        return heard

    def _tell(self, objects: list[T], version: str, malformed: tuple[Malformed, ...]) -> None:
        self.cache.replace(objects, version, malformed)
        self._recover()
        if not self.is_synced:
            self.is_synced = True
            self._on_synced()

    def _recover(self) -> None:
        if self.error:
            self.error = ""
            self._on_trouble()

    def _hear(self) -> None:
        self._heard_at = self._clock.monotonic()

    def _move(self, happening: Happening) -> None:
        self.state = after(self.state, happening)

    def _note(self, error: Exception, happening: Happening) -> None:
        if happening is Happening.REFUSED:
            _log.info("listing in pages", resource=str(self.source), reason=str(error))
            return
        if isinstance(error, NotFound):
            self._on_missing()
        self.restarts += 1
        known, self.error = self.error, self._named(error)
        if self.error != known:
            self._on_trouble()
        _log.warning("watching again", resource=str(self.source), phase=self.state.phase.value, reason=self.error)

    def _named(self, error: Exception) -> str:
        """Of a right that is missing: which. The user is in the server's words."""
        if isinstance(error, Forbidden):
            verb = "list" if self.state.phase is Phase.LISTING else "watch"
            said = str(error)
            return f"cannot {verb} {self.source.resource}{FORBIDDEN}{said.partition(' is forbidden: ')[2] or said}"
        return f"{type(error).__name__}: {error}"


def _happening(phase: Phase, error: Exception) -> Happening:
    """What a failure means in the phase it happened in."""
    if phase is Phase.STREAMING:
        if isinstance(error, (BadRequest, Invalid)):
            return Happening.REFUSED
        if isinstance(error, (Expired, ServerError, TransportTimeout, EndedTooSoon)):
            return Happening.STUCK
    if phase is Phase.WATCHING:
        if _is_version_unusable(error):
            return Happening.EXPIRED
        if isinstance(error, TransportTimeout):
            return Happening.SILENT
    return Happening.BROKEN


def _is_version_unusable(error: Exception) -> bool:
    """Too old; or too new, or of another kind, as after a restore from a backup."""
    if isinstance(error, (Expired, BadRequest, Invalid)):
        return True
    return isinstance(error, ApiError) and error.has_cause("ResourceVersionTooLarge")
