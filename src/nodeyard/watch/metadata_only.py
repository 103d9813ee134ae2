"""Client wrapper that requests every object as PartialObjectMetadata.

The server then sends a few hundred bytes of each object, whatever its kind. A single object and a list are requested
by different media types, so there is one function for each.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.transport import NOTHING, REQUEST_SECONDS, Hold, Response, Stream, Transport

# An aggregated API server without this form falls back to whole objects, which decode to the same type.
_ONE: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def metadata_only(client: Client) -> Client:
    """Return a client for lists and watches, with the same connections and observer."""
    return _accepting(client, _LIST)


def single_metadata_only(client: Client) -> Client:
    """Return a client for `get`, with the same connections and observer."""
    return _accepting(client, _ONE)


def _accepting(client: Client, form: str) -> Client:
    partial = copy.copy(client)
    partial.transport = _Partial(client.transport, form)
    return partial


class _Partial:
    def __init__(self, transport: Transport, form: str) -> None:
        self._transport = transport
        self._form = form

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
        wanted = {**headers, "Accept": self._form}
        return await self._transport.request(
            method, path, query=query, headers=wanted, body=body, timeout=timeout, retry=retry, hold=hold
        )

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
        wanted = {**headers, "Accept": _ONE}
        async with self._transport.stream(
            path, query=query, headers=wanted, timeout=timeout, idle_timeout=idle_timeout
        ) as stream:
            yield stream

    async def close(self) -> None:
        await self._transport.close()
