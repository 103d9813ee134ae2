"""Transport that calls a server in the same process.

It knows the server only as an `Exchange`, so the client does not depend on it; simulation and tests connect them. Idle
timeouts use the given clock, which may be virtual.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from nodeyard.client.errors import TransportTimeout, Withheld
from nodeyard.client.transport import Request, Response, Stream
from nodeyard.process.clock import Clock


class Answer(Protocol):
    """The response of the server's handler."""

    status: int
    headers: list[tuple[str, str]]
    stream: AsyncIterator[bytes] | None

    def payload(self) -> bytes: ...


class Exchange(Protocol):
    """One request to the server; header names are in lower case."""

    async def __call__(
        self,
        method: str,
        path: str,
        query: Mapping[str, tuple[str, ...]],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Answer: ...


class InProcessTransport:
    def __init__(self, exchange: Exchange, clock: Clock) -> None:
        self._exchange = exchange
        self._clock = clock

    async def send(self, request: Request) -> Response:
        if request.hold is not None and (why := request.hold()):
            raise Withheld(why)
        answer = await self._exchange(
            request.method, request.path, _multi(request.query), _lower(request.headers), request.body
        )
        warnings = tuple(value for name, value in answer.headers if name.lower() == "warning")
        return Response(answer.status, _headers(answer.headers), answer.payload(), warnings)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        answer = await self._exchange("GET", request.path, _multi(request.query), _lower(request.headers), b"")
        source = answer.stream if answer.stream is not None else _once(answer.payload())
        watched = _Watched(source, self._clock, request.idle_timeout, f"GET {request.path}")
        try:
            yield Stream(answer.status, _headers(answer.headers), watched)
        finally:
            await watched.aclose()

    async def close(self) -> None:
        """Nothing is open."""


class _Watched:
    """Chunks with a limit on silence while someone waits for one: one watchdog per stream, not one timer per chunk."""

    def __init__(self, source: AsyncIterator[bytes], clock: Clock, idle_timeout: float, what: str) -> None:
        self._source = source
        self._clock = clock
        self._idle_timeout = idle_timeout
        self._what = what
        self._last = clock.monotonic()
        self._reader: asyncio.Task[object] | None = None
        self._is_silent = False
        self._watchdog = asyncio.create_task(self._watch())

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        reader = self._reader = asyncio.current_task()
        self._last = self._clock.monotonic()
        try:
            chunk = await anext(self._source)
        except asyncio.CancelledError:
            if self._is_silent and reader is not None and reader.uncancel() == 0:
                raise TransportTimeout(
                    f"{self._what}: no data for {self._idle_timeout:g} s", may_have_run=True
                ) from None
            raise
        finally:
            self._reader = None
        return chunk

    async def aclose(self) -> None:
        self._watchdog.cancel()
        await asyncio.gather(self._watchdog, return_exceptions=True)
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()

    async def _watch(self) -> None:
        while True:
            left = self._last + self._idle_timeout - self._clock.monotonic()
            if left <= 0 and self._reader is not None:
                break
            await self._clock.sleep(max(left, 1.0))
        self._is_silent = True
        self._reader.cancel()


async def _once(payload: bytes) -> AsyncIterator[bytes]:
    yield payload


def _multi(query: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {name: (value,) for name, value in query.items()}


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {"accept": "application/json", **{name.lower(): value for name, value in headers.items()}}


def _headers(pairs: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    return {name.lower(): value for name, value in pairs}
