"""Client wrapper that requests every object as PartialObjectMetadata.

The server then sends a few hundred bytes of each object, whatever its kind. A single object and a list are requested
by different media types, so there is one function for each.
"""

from __future__ import annotations

import copy
from contextlib import AbstractAsyncContextManager
from typing import Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.transport import Request, Response, Stream, Transport

# An aggregated API server without this form falls back to whole objects, which decode to the same type.
_ONE: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def metadata_only(client: Client) -> Client:
    """Return a client for lists and watches, with the same connections and observer."""
    return _with_accept(client, _LIST)


def single_metadata_only(client: Client) -> Client:
    """Return a client for `get`, with the same connections and observer."""
    return _with_accept(client, _ONE)


def _with_accept(client: Client, form: str) -> Client:
    partial = copy.copy(client)
    partial.transport = _Partial(client.transport, form)
    return partial


class _Partial:
    def __init__(self, transport: Transport, form: str) -> None:
        self._transport = transport
        self._form = form

    async def send(self, request: Request) -> Response:
        return await self._transport.send(_accept(request, self._form))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._transport.stream(_accept(request, _ONE))

    async def close(self) -> None:
        await self._transport.close()


def _accept(request: Request, form: str) -> Request:
    return msgspec.structs.replace(request, headers={**request.headers, "Accept": form})
