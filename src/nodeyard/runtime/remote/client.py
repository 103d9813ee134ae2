"""The client of a remote cluster, which is untrusted: nothing that it sends is quoted or kept without bounds.

    error response   only its code and reason are passed on, never its text, which conditions and logs would show
    objects          weighed on arrival; the total kept over all kinds is limited (`MemoryUse`)
    a line, a page   limited in size before it is decoded (`transport`, `connect`)
    discovery        limited in size over all its requests

There is a limit per cluster over all its lists and watches, and one over all clusters together (`MemoryBudget`), half
of the memory of the process. A cluster that exceeds its own limit is disconnected and its caches are dropped. If the
total is exceeded, the largest cluster is.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from nodeyard.client.api import Client, Event
from nodeyard.client.decoder import Bookmark, Malformed, Page, WatchEvent
from nodeyard.client.discovery import Catalog, discover
from nodeyard.client.errors import (
    ApiError,
    Cause,
    Details,
    Status,
    TransportError,
    error_from_status,
)
from nodeyard.client.resources import Resource
from nodeyard.client.transport import Request, RequestSender, Response
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, SUBDOMAIN_MAX
from nodeyard.runtime.capability import Aggregate, Watch

T = TypeVar("T")

KEPT_BYTES: Final = 256 << 20
"""Memory limit of one cluster over all its kinds: about 65,000 pods. The same again while lists are read."""
LIMIT_FILES: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
"""The limit files of control groups version 2 and 1 inside a container."""
MEMORY_DIVISOR: Final = 2
"""All clusters together may use one part in this many of the available memory."""
PAGE_OBJECTS: Final = 100
"""Objects in a list page: a whole page is decoded before it is weighed."""
MOST_OBJECTS: Final = 10_000
"""Objects above which a list page is refused undecoded: of tiny ones, 16 MiB hold millions."""
SMALL_BYTES: Final = 64 * 1024
"""A page of this size is decoded in 30 ms, whatever it holds."""
VALUE_BYTES: Final = 28
"""Memory overhead of a string, counted per quote character of its JSON."""
MALFORMED_BYTES: Final = 2048
DISCOVERY_BYTES: Final = 4 << 20
"""Size limit of all responses of one discovery: about 8,000 kinds."""
DISCOVERY_IN_FLIGHT: Final = 4
CATALOG_WEIGHT: Final = 16
"""Memory of a catalog, per byte of discovery; never much too low, even for tiny kinds."""
TOO_LARGE: Final = "sends more objects than are kept of"
"""Part of the error of a cluster that was disconnected for its size."""

_BYTES: Final = "nodeyard.dev/bytes"
_READS: Final = frozenset(("get", "list"))
_ERROR_CHARACTERS: Final = 500
_UID_CHARACTERS: Final = 128
_REASONS: Final = frozenset(
    (
        "AlreadyExists",
        "BadRequest",
        "Conflict",
        "Expired",
        "Forbidden",
        "Gone",
        "InternalError",
        "Invalid",
        "MethodNotAllowed",
        "NotAcceptable",
        "NotFound",
        "RequestEntityTooLarge",
        "ServerTimeout",
        "ServiceUnavailable",
        "Timeout",
        "TooManyRequests",
        "Unauthorized",
        "UnsupportedMediaType",
    )
)
_CAUSES: Final = frozenset(("ResourceVersionTooLarge", "DisruptionBudget"))
_encode: Final = msgspec.json.Encoder().encode


class _Unread(msgspec.Struct, gc=False):
    """An object whose members are skipped."""


class _UnreadList(msgspec.Struct):
    items: list[_Unread] | None = None


_decode_unread: Final = msgspec.json.Decoder(_UnreadList).decode


def weight(obj: Any) -> int:
    """Estimate the memory of an object; never much too low, even for many tiny values."""
    encoded = _encode(obj)
    return len(encoded) + VALUE_BYTES * encoded.count(b'"')


def memory_aggregates(watches: Iterable[Watch]) -> tuple[Aggregate, ...]:
    """Return the aggregates that sum the memory of each cached kind."""
    kinds = dict.fromkeys(watch.resource.kind for watch in watches)
    return tuple(
        Aggregate(
            f"{_BYTES}/{kind}",
            kind,
            lambda: 0,
            lambda _obj: ("",),
            lambda total, obj: total + weight(obj),
            lambda total, obj: total - weight(obj),
        )
        for kind in kinds
    )


def memory_limit(files: Iterable[Path] = LIMIT_FILES) -> int:
    """Return the memory limit of the process in bytes: that of its container, else the memory of the machine."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(min([machine, *map(_limit_in, files)]))


def _limit_in(file: Path) -> float:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        # No such file, or "max".
        return float("inf")


class MemoryBudget:
    """The memory of all remote clusters together, bounded.

    The largest cluster is rejected. Until its caches are dropped, the others wait before they read on: the event loop,
    busy with their data, would get to it late.
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most or memory_limit() // MEMORY_DIVISOR
        self._sizes: dict[MemoryUse, int] = {}
        self._leaving: dict[MemoryUse, int] = {}
        """Rejected clusters whose caches are not dropped yet."""
        self._total = 0
        """Total of the clusters that are not rejected."""
        self._has_room = asyncio.Event()

    def update(self, memory_use: MemoryUse, size: int) -> None:
        """Set the memory of a cluster. If the total is exceeded, the largest cluster is rejected."""
        self._total += size - self._sizes.get(memory_use, 0)
        self._sizes[memory_use] = size
        while self._total > self._most:
            heaviest = max(self._sizes, key=self._sizes.__getitem__)
            heaviest.reject(f"it {TOO_LARGE} all clusters together, {self._most >> 20} MiB, and most of them")

    def reject(self, memory_use: MemoryUse) -> None:
        """Count the cluster as rejected."""
        size = self._sizes.pop(memory_use, 0)
        self._total -= size
        self._leaving[memory_use] = size

    def drop(self, memory_use: MemoryUse) -> None:
        """Remove the cluster."""
        self._total -= self._sizes.pop(memory_use, 0)
        self._leaving.pop(memory_use, None)
        self._has_room.set()

    async def wait_for_room(self) -> None:
        """Wait while the caches of rejected clusters have to be dropped first."""
        while self._leaving and self._total + sum(self._leaving.values()) > self._most:
            self._has_room.clear()
            await self._has_room.wait()


class MemoryUse:
    """The memory of one cluster: cached objects, and objects of lists in progress."""

    def __init__(self, on_excess: Callable[[str], None], budget: MemoryBudget | None = None) -> None:
        self._on_excess = on_excess
        self._budget = budget or MemoryBudget()
        self._rejection = ""
        self._most = KEPT_BYTES
        self._arriving: dict[object, int] = {}
        self.kept: Callable[[], int] = lambda: 0
        """Returns the memory of the caches, in constant time."""

    def add(self, owner: object, objects: Iterable[Any]) -> None:
        """Add objects of an unfinished list. Raises TransportError if that is too much."""
        self._arriving[owner] = self._arriving.get(owner, 0) + sum(map(weight, objects))
        self._check_limit()

    def end(self, owner: object) -> None:
        self._arriving.pop(owner, None)

    def check(self) -> None:
        """Raise TransportError if the caches hold too much."""
        self._check_limit()

    def reject(self, why: str) -> None:
        """Disconnect the cluster; nothing more of it is read until its caches are dropped."""
        if self._rejection:
            return
        self._budget.reject(self)
        self._rejection = why
        self._on_excess(why)

    async def wait_for_room(self) -> None:
        """Wait while the total is exceeded. Raises TransportError if this cluster is rejected meanwhile."""
        await self._budget.wait_for_room()
        if self._rejection:
            raise TransportError(self._rejection, may_have_run=True)

    def forget(self) -> None:
        """Reset after the caches were dropped."""
        self._rejection = ""
        self._budget.drop(self)

    def _check_limit(self) -> None:
        if not self._rejection:
            arriving, kept = sum(self._arriving.values()), self.kept()
            if max(arriving, kept) > self._most:
                self.reject(f"it {TOO_LARGE} one cluster, {self._most >> 20} MiB")
            else:
                self._budget.update(self, arriving + kept)
        if self._rejection:
            raise TransportError(self._rejection, may_have_run=True)


def cached_bytes(view: Any, watches: Iterable[Watch]) -> Callable[[], int]:
    """Return a function that sums the `memory_aggregates` of a view."""
    kinds = tuple(dict.fromkeys(watch.resource.kind for watch in watches))

    def count_bytes() -> int:
        whole: int = sum(view.aggregate(f"{_BYTES}/{kind}", "") for kind in kinds)
        return whole + MALFORMED_BYTES * sum(len(view.malformed(kind)) for kind in kinds)

    return count_bytes


class RemoteClient(Client):
    def __init__(self, *args: Any, memory_use: MemoryUse | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._memory = memory_use
        self.catalog_bytes = 0
        """Memory of the last catalog."""

    async def pages(
        self, resource: Resource[T], namespace: str = "", *, size: int = PAGE_OBJECTS, **selectors: str
    ) -> AsyncIterator[Page[T]]:
        memory_use, owner = self._memory, object()
        try:
            async for page in super().pages(resource, namespace, size=min(size, PAGE_OBJECTS), **selectors):
                if memory_use is not None:
                    memory_use.add(owner, page.items)
                    memory_use.add(owner, page.malformed)
                    await memory_use.wait_for_room()
                yield msgspec.structs.replace(page, malformed=tuple(map(_trim, page.malformed)))
        finally:
            if memory_use is not None:
                memory_use.end(owner)

    @asynccontextmanager
    async def watch(
        self, resource: Resource[T], namespace: str = "", *, initial_events: bool = False, **options: Any
    ) -> AsyncIterator[AsyncIterator[Event[T]]]:
        try:
            async with super().watch(resource, namespace, initial_events=initial_events, **options) as events:
                yield self._weigh(events, is_list=initial_events)
        except ApiError as error:
            raise redact(error) from None

    async def _weigh(self, events: AsyncIterator[Event[T]], *, is_list: bool) -> AsyncIterator[Event[T]]:
        memory_use, owner = self._memory, object()
        try:
            async for event in events:
                if memory_use is not None and is_list:
                    memory_use.add(owner, (event.object,) if isinstance(event, WatchEvent) else (event,))
                    if isinstance(event, Bookmark) and event.ends_initial_events:
                        is_list = False
                        memory_use.end(owner)
                yield _trim(event) if isinstance(event, Malformed) else event
                if memory_use is not None:
                    if not is_list:
                        # The consumer has cached this event before it asks for the next.
                        memory_use.check()
                    await memory_use.wait_for_room()
        except ApiError as error:
            raise redact(error) from None
        finally:
            if memory_use is not None:
                memory_use.end(owner)

    async def catalog(self) -> Catalog:
        discovery = _BoundedDiscovery(self.transport)
        try:
            found = await discover(discovery)
        except ApiError as error:
            raise redact(error) from None
        except _DiscoveryTooLarge:
            if self._memory is not None:
                self._memory.reject(f"it {TOO_LARGE} one cluster: discovery has {DISCOVERY_BYTES >> 20} MiB and more")
            raise
        self.catalog_bytes = discovery.size * CATALOG_WEIGHT
        if self._memory is not None:
            self._memory.check()
        return found

    async def server_version(self) -> Object:
        try:
            return await super().server_version()
        except ApiError as error:
            raise redact(error) from None

    async def _send(self, verb: str, *args: Any, **options: Any) -> Response:
        try:
            response = await super()._send(verb, *args, **options)
        except ApiError as error:
            raise redact(error) if verb in _READS else error from None
        if verb == "list":
            _check_page(response.body)
        return response


class _DiscoveryTooLarge(TransportError):
    """The responses of a discovery exceed DISCOVERY_BYTES."""

    def __init__(self) -> None:
        super().__init__(f"discovery has more than {DISCOVERY_BYTES >> 20} MiB", may_have_run=True)


class _BoundedDiscovery:
    """The transport of one discovery. It limits the size of all responses together, and the requests in flight."""

    def __init__(self, transport: RequestSender) -> None:
        self._transport = transport
        self._slots = asyncio.Semaphore(DISCOVERY_IN_FLIGHT)
        self.size = 0

    async def send(self, request: Request) -> Response:
        async with self._slots:
            self._check()
            response = await self._transport.send(request)
            self.size += len(response.body)
            self._check()
        return response

    def _check(self) -> None:
        if self.size > DISCOVERY_BYTES:
            raise _DiscoveryTooLarge


def redact(error: ApiError) -> ApiError:
    """Return the error without text that the server chose."""
    reason = error.reason if error.reason in _REASONS else ""
    status = Status(
        kind="Status",
        status="Failure",
        code=error.code,
        reason=reason,
        message=f"the server answered {error.code} {reason}".strip(),
        details=Details(causes=tuple(Cause(reason=each.reason) for each in error.causes if each.reason in _CAUSES)),
    )
    return error_from_status(status, retry_after=error.retry_after)


def _check_page(body: bytes) -> None:
    """Raise TransportError if the page has too many objects, or is so deep that they cannot be counted."""
    if len(body) <= SMALL_BYTES:
        return
    try:
        count = len(_decode_unread(body).items or ())
    except (msgspec.DecodeError, RecursionError):
        raise TransportError("a page of a list is not a list of objects", may_have_run=True) from None
    if count > MOST_OBJECTS:
        raise TransportError(f"a page of a list has more than {MOST_OBJECTS} objects", may_have_run=True)


def _trim(malformed: Malformed) -> Malformed:
    """Limit the fields of a malformed object. Raises TransportError if its name is too long to be valid."""
    names = ((malformed.name, SUBDOMAIN_MAX), (malformed.namespace, LABEL_VALUE_MAX), (malformed.uid, _UID_CHARACTERS))
    if any(len(text) > most for text, most in (*names, (malformed.resource_version, _UID_CHARACTERS))):
        raise TransportError("an object has a name, uid or version that is too long to be valid", may_have_run=True)
    return msgspec.structs.replace(malformed, error=malformed.error[:_ERROR_CHARACTERS], finalizers=())
