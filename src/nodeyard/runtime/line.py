"""The line to one further cluster: a transport whose far end can be exchanged, or be missing for a while.

Clients, watches and the applier hold the line for as long as the cluster is named; credentials come and go behind it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from nodeyard.client.errors import TransportError
from nodeyard.client.transport import NOTHING, REQUEST_SECONDS, Hold, Response, Stream, Transport


class Line:
    """`on_trouble` is called when an answer stayed away: a reason to look whether there is contact at all."""

    def __init__(self, cluster: str, on_trouble: Callable[[], None]) -> None:
        self._cluster = cluster
        self._on_trouble = on_trouble
        self._far: Transport | None = None

    async def join(self, far: Transport) -> None:
        """From here on requests go there; what was under way on another end breaks."""
        old, self._far = self._far, far
        if old is not None:
            await old.close()

    async def cut(self) -> None:
        """From here on nothing is sent; what was under way breaks."""
        far, self._far = self._far, None
        if far is not None:
            await far.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float = REQUEST_SECONDS,
        retry: bool = True,
        hold: Hold | None = None,
    ) -> Response:
        far = self._end()
        try:
            return await far.request(
                method, path, query=query, headers=headers, body=body, timeout=timeout, retry=retry, hold=hold
            )
        except TransportError:
            self._on_trouble()
            raise

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        timeout: float = REQUEST_SECONDS,
        idle_timeout: float = 60.0,
    ) -> AsyncIterator[Stream]:
        far = self._end()
        try:
            async with far.stream(
                path, query=query, headers=headers, timeout=timeout, idle_timeout=idle_timeout
            ) as stream:
                yield stream
        except TransportError:
            self._on_trouble()
            raise

    async def close(self) -> None:
        await self.cut()

    def _end(self) -> Transport:
        if self._far is None:
            raise TransportError(f"cluster {self._cluster} is not connected", may_have_run=False)
        return self._far
