"""The transport to one remote cluster, whose underlying connection can be replaced or missing.

Clients, informers and the applier hold this transport for as long as the cluster is declared; credentials change behind
it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from nodeyard.client.errors import TransportError
from nodeyard.client.transport import Request, Response, Stream, Transport

EVENT_BYTES: Final = 4 << 20
"""Size limit of one watch event: an API server stores no object above 3 MiB."""


class RemoteTransport:
    """`on_trouble` is called when a request fails without a response: a reason to probe the cluster."""

    def __init__(self, cluster: str, on_trouble: Callable[[], None]) -> None:
        self._cluster = cluster
        self._on_trouble = on_trouble
        self._inner: Transport | None = None

    async def attach(self, inner: Transport) -> None:
        """Send requests through this transport from now on; requests in flight on the old one fail."""
        old, self._inner = self._inner, inner
        if old is not None:
            await old.close()

    async def detach(self) -> None:
        """Send nothing from now on; requests in flight fail."""
        inner, self._inner = self._inner, None
        if inner is not None:
            await inner.close()

    async def send(self, request: Request) -> Response:
        inner = self._require_inner()
        try:
            return await inner.send(request)
        except TransportError:
            self._on_trouble()
            raise

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        inner = self._require_inner()
        try:
            async with inner.stream(request) as stream:
                yield Stream(stream.status, stream.headers, _limit_lines(stream.chunks))
        except TransportError:
            self._on_trouble()
            raise

    async def close(self) -> None:
        await self.detach()

    def _require_inner(self) -> Transport:
        if self._inner is None:
            raise TransportError(f"cluster {self._cluster} is not connected", may_have_run=False)
        return self._inner


async def _limit_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks; raise TransportError if a line exceeds the size limit of an event."""
    size = 0
    async for chunk in chunks:
        end = chunk.rfind(b"\n")
        size = len(chunk) - end - 1 if end >= 0 else size + len(chunk)
        if size > EVENT_BYTES:
            raise TransportError(f"a watch event is larger than {EVENT_BYTES >> 20} MiB", may_have_run=True)
        yield chunk
