"""Reflector: lists one kind, then watches it, and keeps one cache equal to the server.

    STREAMING ───listed────▶ WATCHING ──ended──▶ WATCHING          the regular end of a watch is no error
        │                    ▲    │
     refused                 │    ├──expired──▶ STREAMING          410 Gone: relist
        ▼                    │    │
     LISTING ────listed──────┘    └──broken──▶ WAITING ──▶ WATCHING from the last resourceVersion

After a failure the reflector backs off, then retries the phase that failed. After two idle timeouts in a row it
relists: a server restored from a backup may never reach the last resourceVersion. If the server refuses to stream the
list (400, 422), the reflector lists in pages from then on. If streaming fails midway, the next list is in pages.

`next_state` is the state machine, without I/O; `Reflector` does the work of each phase. `run` never returns unless it
is cancelled, whatever fails: a watch must not die silently. It awaits only the network: it decodes, stores and
continues, because the server disconnects a slow reader. Planning, writing and discovery run elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Any, Final, Generic, TypeVar

from nodeyard.client.api import Client, Event
from nodeyard.client.decoder import Bookmark, Malformed, WatchEvent
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
from nodeyard.client.outages import OUTAGES
from nodeyard.client.resources import Resource
from nodeyard.client.transport import IDLE_SECONDS
from nodeyard.kube.object_key import Key, identity_of
from nodeyard.kube.objects import PartialObject
from nodeyard.kube.selectors import parse_labels
from nodeyard.process.backoff import Backoff
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.watch.cache import Cache, Selection

T = TypeVar("T")

# The range of timeoutSeconds of a watch, random so that not all watches restart at once.
WATCH_SECONDS: Final = (300, 600)
# Two bookmarks were missed and the idle timeout has passed: the cache counts as stalled.
STALLED_SECONDS: Final = 150.0
# The server sends a bookmark every minute: after this time one is missing.
SILENT_SECONDS: Final = 65.0
# An empty stream that ends sooner than this is a failure, not the regular end of a watch.
SHORTEST_WATCH_SECONDS: Final = 1.0
# Marks an error as missing RBAC permission, which does not resolve by retrying.
FORBIDDEN: Final = ": forbidden: "
# The event loop gets a turn after this many consecutive events.
BURST: Final = 256

_log = get_logger("informer")


class Phase(Enum):
    STREAMING = "Streaming"
    """A watch that begins with the list (`sendInitialEvents`)."""
    LISTING = "Listing"
    """A list in pages."""
    WATCHING = "Watching"
    """A watch from the last resourceVersion."""
    WAITING = "Waiting"
    """Backoff before a retry."""
    STOPPED = "Stopped"


class ReflectorEvent(Enum):
    LISTED = "the list is complete"
    RECEIVED = "an event or a bookmark arrived"
    ENDED = "the server ended the watch"
    BROKEN = "the connection or the request failed"
    SILENT = "the idle timeout passed without an event or a bookmark"
    EXPIRED = "the last resourceVersion is too old"
    STREAMING_REFUSED = "the server does not support streaming lists"
    LIST_FAILED = "the streamed list broke off"
    BACKOFF_OVER = "the backoff is over"
    STOPPED = "the watch was stopped"


@dataclass(frozen=True, slots=True)
class State:
    phase: Phase = Phase.STREAMING
    then: Phase = Phase.STREAMING
    """The phase that follows the backoff."""
    failures: int = 0
    """Consecutive failures since the last event; they determine the backoff."""
    can_stream: bool = True


def next_state(state: State, event: ReflectorEvent) -> State:
    """Return the state after an event."""
    if event is ReflectorEvent.RECEIVED:
        return state if not state.failures else replace(state, failures=0)
    if event in (ReflectorEvent.LISTED, ReflectorEvent.ENDED):
        return replace(state, phase=Phase.WATCHING)
    if event is ReflectorEvent.BACKOFF_OVER:
        return replace(state, phase=state.then)
    if event is ReflectorEvent.STREAMING_REFUSED:
        return replace(state, phase=Phase.LISTING, can_stream=False)
    if event is ReflectorEvent.STOPPED:
        return replace(state, phase=Phase.STOPPED)
    return _after_failure(state, event)


def _after_failure(state: State, event: ReflectorEvent) -> State:
    failures = state.failures + 1
    if event is ReflectorEvent.BROKEN:
        return replace(state, phase=Phase.WAITING, then=state.phase, failures=failures)
    if event is ReflectorEvent.LIST_FAILED:
        return replace(state, phase=Phase.WAITING, then=Phase.LISTING, failures=failures)
    relist = Phase.STREAMING if state.can_stream else Phase.LISTING
    if event is ReflectorEvent.SILENT:
        is_trusted = state.phase is Phase.WATCHING and state.failures == 0
        return replace(state, phase=Phase.WAITING, then=Phase.WATCHING if is_trusted else relist, failures=failures)
    # One relist is normal. A server that expires each list at once must not be relisted in a tight loop.
    phase = relist if state.failures == 0 else Phase.WAITING
    return replace(state, phase=phase, then=relist, failures=failures)


@dataclass(frozen=True, slots=True)
class InformerKey:
    """Key of a reflector: the objects that it lists and watches. Watches with equal keys share one informer."""

    resource: Resource[Any]
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    fallback_versions: tuple[str, ...] = ()
    """Versions to watch if the server does not serve the resource's own, in order of preference."""
    namespace: str = ""
    """The only namespace to watch; empty for all namespaces."""

    def covers(self, namespace: str) -> bool:
        """Return True if the informer watches this namespace."""
        return self.namespace in ("", namespace)

    @property
    def selection(self) -> Selection | None:
        if not self.label_selector and not self.field_selector:
            return None
        return Selection(parse_labels(self.label_selector), takes_newcomers=not self.field_selector)

    @property
    def decoded(self) -> Resource[Any]:
        """The resource with the type of the cached objects: PartialObject for a metadata-only watch."""
        is_whole = not self.metadata_only or self.resource.view is not dict
        return self.resource if is_whole else self.resource.decoded_as(PartialObject)

    def __str__(self) -> str:
        selectors = ",".join(filter(None, (self.label_selector, self.field_selector)))
        selected = f"{self.resource}[{selectors}]" if selectors else str(self.resource)
        return f"{selected} in {self.namespace}" if self.namespace else selected


class EndedTooSoon(Exception):
    """The server ended a stream before it sent the initial list or any event."""


@dataclass(frozen=True, slots=True)
class Report:
    """Health of an informer, for readiness, metrics and the dashboard."""

    resource: str
    phase: str
    is_synced: bool
    is_stalled: bool
    silence: float
    """Seconds since the last event or bookmark."""
    restarts: int
    objects: int
    malformed: int
    unconfirmed: int
    error: str


class Reflector(Generic[T]):
    def __init__(
        self,
        client: Client,
        informer_key: InformerKey,
        cache: Cache[T],
        clock: Clock,
        random: Random,
        *,
        on_synced: Callable[[], None] = lambda: None,
        on_missing: Callable[[], None] = lambda: None,
        on_watch_error: Callable[[], None] = lambda: None,
        backoff: Backoff | None = None,
        idle_timeout: float = IDLE_SECONDS,
    ) -> None:
        self.informer_key = informer_key
        self.cache = cache
        self.state = State()
        self.is_synced = False
        self.restarts = 0
        """The number of failures and relists; the regular end of a watch does not count."""
        self.error = ""
        """The current failure; empty while the watch works."""
        self.is_missing = False
        """True if the last request failed with 404: the server does not serve the kind."""
        self._client = client
        self._resource: Resource[T] = informer_key.decoded
        self._key: Callable[[Any], Key] = identity_of(self._resource.view).key
        self._clock = clock
        self._random = random
        self._on_synced = on_synced
        self._on_missing = on_missing
        self._on_watch_error = on_watch_error
        self._backoff = backoff or Backoff()
        self._idle_timeout = idle_timeout
        self._received_at = clock.monotonic()
        self._broken_at: float | None = None

    def staleness(self, seconds: float = 0.0) -> str:
        """Return why the cache has been stale for at least this many seconds; empty if it is not."""
        if self.error and self._broken_at is not None:
            is_long = self._clock.monotonic() - self._broken_at >= seconds
            return f"the watch of {self.informer_key} is failing: {self.error}" if is_long else ""
        if self.is_synced and self.silence > SILENT_SECONDS + seconds:
            return f"the watch of {self.informer_key} has received nothing for more than {SILENT_SECONDS:.0f} s"
        return ""

    @property
    def silence(self) -> float:
        return self._clock.monotonic() - self._received_at

    @property
    def is_stalled(self) -> bool:
        """True if nothing was received for so long that the cache must not be relied on."""
        return self.silence > STALLED_SECONDS

    def report(self) -> Report:
        return Report(
            resource=str(self.informer_key),
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
        """Start with a watch instead of a list: the cache already holds this server's objects. Call before `run`."""
        self.state = State(phase=Phase.WATCHING)
        self.is_synced = True

    async def run(self) -> None:
        """List and watch until cancelled."""
        self._received_at = self._clock.monotonic()
        retry_after = 0.0
        try:
            while True:
                if self.state.phase is Phase.WAITING:
                    wait = self._backoff.seconds(self.state.failures, self._random, retry_after)
                    await self._clock.sleep(wait)
                    self._move(ReflectorEvent.BACKOFF_OVER)
                    continue
                retry_after = 0.0
                try:
                    event = await (self._list() if self.state.phase is Phase.LISTING else self._watch())
                except Exception as error:
                    event = _classify(self.state.phase, error)
                    retry_after = getattr(error, "retry_after", None) or 0.0
                    self._record_failure(error, event)
                self._move(event)
        finally:
            self._move(ReflectorEvent.STOPPED)

    async def _list(self) -> ReflectorEvent:
        page = await self._client.list(
            self._resource,
            self.informer_key.namespace,
            labels=self.informer_key.label_selector,
            fields=self.informer_key.field_selector,
        )
        self._mark_received()
        self._replace(page.items, page.resource_version, page.malformed)
        return ReflectorEvent.LISTED

    async def _watch(self) -> ReflectorEvent:
        is_streaming = self.state.phase is Phase.STREAMING
        begun = self._clock.monotonic()
        async with self._client.watch(
            self._resource,
            self.informer_key.namespace,
            labels=self.informer_key.label_selector,
            fields=self.informer_key.field_selector,
            resource_version="" if is_streaming else self.cache.version,
            initial_events=is_streaming,
            seconds=self._random.randint(*WATCH_SECONDS),
            idle_timeout=self._idle_timeout,
        ) as events:
            if is_streaming:
                await self._stream_list(events)
            elif self.silence <= SILENT_SECONDS:
                # The server has accepted our version, and sends the next bookmark a minute from now. A watch that was
                # silent for too long stays stale until an event or a bookmark arrives.
                self._mark_received()
            received = await self._follow(events)
        if not received and not is_streaming and self._clock.monotonic() - begun < SHORTEST_WATCH_SECONDS:
            raise EndedTooSoon("the watch ended at once without an event")
        return ReflectorEvent.ENDED

    async def _stream_list(self, events: AsyncIterator[Event[T]]) -> None:
        """Collect a streamed list, and store it once it is complete."""
        objects: dict[Key, T] = {}
        malformed: dict[Key, Malformed] = {}
        async for event in events:
            self._mark_received()
            if isinstance(event, WatchEvent):
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
                self._replace(list(objects.values()), event.resource_version, tuple(malformed.values()))
                self._move(ReflectorEvent.LISTED)
                return
        raise EndedTooSoon("the watch ended before the initial list was complete")

    async def _follow(self, events: AsyncIterator[Event[T]]) -> int:
        """Store events until the server ends the stream; return how many there were."""
        received = 0
        deliver = self.cache.deliver
        async for event in events:
            self._mark_received()
            received += 1
            if isinstance(event, WatchEvent):
                deliver(event.object, is_deleted=event.type == "DELETED")
            elif isinstance(event, Bookmark):
                self.cache.bookmark(event.resource_version)
            else:
                self.cache.reject(event)
            if received == 1:
                self._recover()
                self._move(ReflectorEvent.RECEIVED)
            if received % BURST == 0:
                await asyncio.sleep(0)
        return received

    def _replace(self, objects: list[T], version: str, malformed: tuple[Malformed, ...]) -> None:
        self.cache.replace(objects, version, malformed)
        self._recover()
        if not self.is_synced:
            self.is_synced = True
            self._on_synced()

    def _recover(self) -> None:
        if self.error:
            self.error, self._broken_at, self.is_missing = "", None, False
            OUTAGES.reset()
            self._on_watch_error()

    def _mark_received(self) -> None:
        was_silent = self.is_synced and self.silence > SILENT_SECONDS
        self._received_at = self._clock.monotonic()
        if was_silent:
            self._on_watch_error()

    def _move(self, event: ReflectorEvent) -> None:
        self.state = next_state(self.state, event)

    def _record_failure(self, error: Exception, event: ReflectorEvent) -> None:
        if event is ReflectorEvent.STREAMING_REFUSED:
            _log.info("streaming list not supported", resource=str(self.informer_key), reason=str(error))
            return
        self.is_missing = isinstance(error, NotFound)
        self.restarts += 1
        known, self.error = self.error, self._describe(error)
        if self._broken_at is None:
            self._broken_at = self._clock.monotonic()
        if self.error != known:
            self._on_watch_error()
        if self.is_missing:
            self._on_missing()
            # The informer factory logs all missing kinds in one line.
            return
        if self.informer_key.namespace and self.error == known:
            # Permission in one namespace may be missing on purpose: it is logged once.
            return
        shown = str(self.informer_key)
        OUTAGES.log(
            _log, "watch restarted", shown, error, resource=shown, phase=self.state.phase.value, reason=self.error
        )

    def _describe(self, error: Exception) -> str:
        """Describe the error; for a 403, name the missing permission and quote the server, which names the user."""
        if isinstance(error, Forbidden):
            verb = "list" if self.state.phase is Phase.LISTING else "watch"
            text = str(error)
            where = f" in namespace {self.informer_key.namespace}" if self.informer_key.namespace else ""
            cause = text.partition(" is forbidden: ")[2] or text
            return f"cannot {verb} {self.informer_key.resource}{where}{FORBIDDEN}{cause}"
        return f"{type(error).__name__}: {error}"


def _classify(phase: Phase, error: Exception) -> ReflectorEvent:
    """Map a failure in a phase to an event of the state machine."""
    if phase is Phase.STREAMING:
        if isinstance(error, (BadRequest, Invalid)):
            return ReflectorEvent.STREAMING_REFUSED
        if isinstance(error, (Expired, ServerError, TransportTimeout, EndedTooSoon)):
            return ReflectorEvent.LIST_FAILED
    if phase is Phase.WATCHING:
        if _is_version_unusable(error):
            return ReflectorEvent.EXPIRED
        if isinstance(error, TransportTimeout):
            return ReflectorEvent.SILENT
    return ReflectorEvent.BROKEN


def _is_version_unusable(error: Exception) -> bool:
    """Return True if the resourceVersion is too old, too new or invalid, as after a restore from a backup."""
    if isinstance(error, (Expired, BadRequest, Invalid)):
        return True
    return isinstance(error, ApiError) and error.has_cause("ResourceVersionTooLarge")
