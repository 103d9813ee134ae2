"""Watches: the events of a resource, filtered, as a stream of lines.

The store feeds a watcher synchronously, so no event between a list and its watch is lost; the listener reads it at the
client's pace. A watcher that falls too far behind is closed, as on the real server: the client resumes from the last
revision it saw.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import NamedTuple, Protocol

import msgspec

from nodeyard.apiserver import errors
from nodeyard.apiserver.lists import too_large
from nodeyard.apiserver.negotiation import Form, Shape
from nodeyard.apiserver.options import ListOptions, parse_revision
from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.apiserver.responses import encode, metadata_bytes, object_bytes, prefix
from nodeyard.apiserver.selection import Selection
from nodeyard.apiserver.store import CompactedError, Event, EventType, Store, Stored, restamp
from nodeyard.apiserver.tables import include_object, table
from nodeyard.apiserver.worker_thread import BATCH, STEP
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock

BACKLOG = 50_000
BOOKMARK_SECONDS = 60.0
DEFAULT_TIMEOUT_SECONDS = 1800.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Bookmark(NamedTuple):
    """A bookmark: all events up to this revision precede it in the queue."""

    revision: int
    ends_initial: bool = False


Line = tuple[EventType, Stored] | Bookmark


@dataclass(frozen=True, slots=True)
class Query:
    """The resource, the selection and the form of a watch."""

    resource: Resource
    version: str
    selection: Selection
    options: ListOptions
    form: Form
    include: str = ""


class Durability(Protocol):
    """The state on disk, which is all that watchers see."""

    revision: int

    async def durable(self) -> None:
        """Wait until everything so far is on disk or taken back."""


class Hub:
    """All watchers of a server by resource."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._watchers: dict[GroupResource, set[_Watcher]] = {}
        self.durability: Durability | None = None
        self._stop_listening = store.listen(self._dispatch)

    def watch(self, query: Query) -> AsyncIterator[bytes]:
        """Start a watch; raises ApiError if the answer is not a stream."""
        watcher = _Watcher(self._begin(query))
        watchers = self._watchers.setdefault(query.resource.key, set())
        watcher.query = query
        watcher.after = parse_revision(query.options.resource_version)
        watchers.add(watcher)
        return self._stream(query, watcher)

    def close(self) -> None:
        """End every stream."""
        self._stop_listening()
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.close()

    def forget(self, revision: int) -> None:
        """Forget queued events of later revisions, which have been taken back."""
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.forget(revision)

    def end(self, key: GroupResource) -> None:
        """End the streams of a resource that is no longer served."""
        for watcher in self._watchers.get(key, ()):
            watcher.close()

    def _begin(self, query: Query) -> deque[Line]:
        options, store = query.options, self._store
        try:
            requested = parse_revision(options.resource_version)
        except ValueError as fault:
            raise errors.ApiError(500, "", str(fault)) from None
        if requested > store.revision and options.send_initial_events:
            raise InStreamError.of(too_large(requested, store.revision))
        lines: deque[Line] = deque()
        sends_initial = requested == 0 if options.send_initial_events is None else options.send_initial_events
        if not sends_initial:
            if requested and requested <= store.revision:
                self._replay(query, requested, lines)
            return lines
        for stored in store.list(query.resource.key, query.selection.namespace):
            if query.selection.includes(stored):
                lines.append(("ADDED", stored))
        if options.bookmarks:
            lines.append(Bookmark(store.revision, ends_initial=True))
        return lines

    def _replay(self, query: Query, revision: int, lines: deque[Line]) -> None:
        try:
            events = self._store.since(query.resource.key, revision)
        except CompactedError:
            gone = errors.expired(f"too old resource version: {revision} ({self._store.revision})")
            raise InStreamError.of(gone) from None
        for event in events:
            line = seen(query.selection, event)
            if line is not None:
                lines.append(line)

    def _dispatch(self, key: GroupResource, event: Event) -> None:
        if self._store.is_undoing:
            return  # No watcher has seen the event.
        for watcher in self._watchers.get(key, ()):
            if event.revision <= watcher.after:
                continue  # it watches from a later revision
            line = seen(watcher.query.selection, event)
            if line is not None:
                watcher.put(line)

    async def _stream(self, query: Query, watcher: _Watcher) -> AsyncIterator[bytes]:
        renderer = _renderer(query, self._clock)
        timeout = query.options.timeout or DEFAULT_TIMEOUT_SECONDS
        timers = [asyncio.create_task(self._expire(watcher, timeout))]
        if query.options.bookmarks:
            timers.append(asyncio.create_task(self._bookmark(watcher)))
        try:
            while True:
                batch = await watcher.take(self.durability)
                if not batch:
                    return
                pending: list[bytes] = []
                size = 0
                for line in batch:
                    pending.append(renderer(line))
                    size += STEP if isinstance(line, Bookmark) else len(line[1].raw) + STEP
                    if size > BATCH:
                        yield b"".join(pending)
                        await asyncio.sleep(0)
                        pending, size = [], 0
                if pending:
                    yield b"".join(pending)
        finally:
            for timer in timers:
                timer.cancel()
            self._watchers[query.resource.key].discard(watcher)

    async def _expire(self, watcher: _Watcher, seconds: float) -> None:
        await self._clock.sleep(seconds)
        watcher.close()

    async def _bookmark(self, watcher: _Watcher) -> None:
        while True:
            await self._clock.sleep(BOOKMARK_SECONDS)
            watcher.put(Bookmark(self._store.revision))


class InStreamError(Exception):
    """The watch answers 200, with an error event in its stream."""

    def __init__(self, line: bytes) -> None:
        super().__init__(line)
        self.line = line

    @classmethod
    def of(cls, error: errors.ApiError) -> InStreamError:
        return cls(b'{"type":"ERROR","object":' + encode(error.status()) + b"}\n")


class _Watcher:
    """The lines that are queued for one client."""

    __slots__ = ("_closed", "_lines", "_wake", "after", "query")

    def __init__(self, lines: deque[Line]) -> None:
        self._lines = lines
        self._wake = asyncio.Event()
        self._closed = False
        self.query: Query
        self.after: int
        if lines:
            self._wake.set()

    def put(self, line: Line) -> None:
        if self._closed:
            return
        if len(self._lines) >= BACKLOG:
            self.close()
            return
        self._lines.append(line)
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def forget(self, revision: int) -> None:
        self._lines = deque(line for line in self._lines if _revision(line) <= revision)

    async def take(self, durability: Durability | None, most: int = 500) -> list[Line]:
        """Return the queued lines that are on disk, at least one; none if the watch has ended."""
        while True:
            while not self._lines:
                if self._closed:
                    return []
                self._wake.clear()
                await self._wake.wait()
            ready = min(most, len(self._lines))
            if durability is not None:
                await durability.durable()
                ready = self._count_until(durability.revision, most)
            if ready:
                return [self._lines.popleft() for _ in range(ready)]

    def _count_until(self, revision: int, most: int) -> int:
        return sum(1 for _ in takewhile(lambda line: _revision(line) <= revision, islice(self._lines, most)))


def _revision(line: Line) -> int:
    return line.revision if isinstance(line, Bookmark) else line[1].revision


def seen(selection: Selection, event: Event) -> tuple[EventType, Stored] | None:
    """The event type for a selection: entering it is ADDED, leaving it is DELETED."""
    if event.type == "DELETED":
        return ("DELETED", event.stored) if selection.includes(event.previous or event.stored) else None
    is_in = selection.includes(event.stored)
    was_in = event.previous is not None and selection.includes(event.previous)
    if is_in:
        return ("MODIFIED" if was_in else "ADDED", event.stored)
    if was_in and event.previous is not None:
        return "DELETED", _at_revision(event.previous, event.revision)
    return None


def _at_revision(stored: Stored, revision: int) -> Stored:
    """The last version of the object, at the revision at which it left the selection."""
    return msgspec.structs.replace(stored, revision=revision, raw=restamp(stored.raw, revision))


Renderer = Callable[[Line], bytes]


def _renderer(query: Query, clock: Clock) -> Renderer:
    show = _shower(query, clock)

    def render(line: Line) -> bytes:
        if isinstance(line, Bookmark):
            return _bookmark_line(query, line)
        kind, stored = line
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), show(stored))

    return render


def _shower(query: Query, clock: Clock) -> Callable[[Stored], bytes]:
    resource, version = query.resource, query.version
    if query.form.shape in (Shape.METADATA, Shape.METADATA_LIST):
        return metadata_bytes
    if query.form.shape is not Shape.TABLE:
        return lambda stored: object_bytes(resource, stored, version)
    include = include_object(query.include)
    is_first = True

    def show(stored: Stored) -> bytes:
        nonlocal is_first
        shown = table(
            resource,
            version,
            [stored.object()],
            now=clock.now(),
            include=include,
            metadata={"resourceVersion": str(stored.revision)},
            with_columns=is_first,
        )
        is_first = False
        return encode(shown)

    return show


def _bookmark_line(query: Query, bookmark: Bookmark) -> bytes:
    metadata: Object = {"resourceVersion": str(bookmark.revision)}
    if bookmark.ends_initial:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    if query.form.shape is Shape.TABLE:
        shown = encode(
            {
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "columnDefinitions": None,
                "rows": [],
            }
        )
    elif query.form.shape is Shape.OBJECT:
        shown = prefix(query.resource, query.version) + b'"metadata":' + encode(metadata) + b"}"
    else:
        shown = encode({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
    return b'{"type":"BOOKMARK","object":%s}\n' % shown


class Stream:
    """An asynchronous generator that releases its resources even if it is closed before it is read.

    Python closes a generator that has not started without running any of it.
    """

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._is_begun = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    def __anext__(self) -> Awaitable[bytes]:
        self._is_begun = True
        return anext(self._chunks)

    async def aclose(self) -> None:
        if not self._is_begun:
            await self._begin()
        await self._chunks.aclose()  # type: ignore[attr-defined]

    async def _begin(self) -> None:
        """Run it to its first chunk, or until it first waits."""
        reading = asyncio.ensure_future(anext(self._chunks, b""))
        reading.get_loop().call_soon(reading.cancel)
        await asyncio.wait([reading])
