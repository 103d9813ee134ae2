"""Metadata only: the same client, asking for every object as PartialObjectMetadata.

The server then sends, and we decode, a few hundred bytes of each object, whatever its kind. The form of a single object
has another name than that of a list: who reads one at a time says so.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.transport import NOTHING, REQUEST_SECONDS, Hold, Response, Stream, Transport

# A server that cannot (a foreign aggregated one) falls back to whole objects, which decode the same.
_ONE: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def metadata_only(client: Client) -> Client:
    """For lists and watches; the same connections and the same observer."""
    return _asking(client, _LIST)


def single_metadata_only(client: Client) -> Client:
    """The same for `get`."""
    return _asking(client, _ONE)


def _asking(client: Client, form: str) -> Client:
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
