"""The HTTPS listener around `Server.handle`.

It reads a whole request, passes it on, and writes the answer: in one piece, in chunks, or as a stream.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from aiohttp import web
from aiohttp.web_request import BaseRequest
from multidict import CIMultiDict

from nodeyard.apiserver import errors
from nodeyard.apiserver.server import Server, error_response
from nodeyard.apiserver.transport import Chunk, Peer, Request, Response

BODY_MAX = 3 * 1024 * 1024
DISCARD_MAX = 64 * 1024 * 1024
GZIP_FROM = 128 * 1024
_WRITE_SIZE = 256 * 1024
_JSON_HEADERS = {"Cache-Control": "no-cache, private"}


@dataclass(slots=True)
class Listener:
    """A listening server."""

    host: str
    port: int
    _runner: web.ServerRunner

    @property
    def url(self) -> str:
        return f"https://{self.host}:{self.port}"

    async def close(self) -> None:
        await self._runner.cleanup()


async def serve(server: Server, host: str, port: int, context: ssl.SSLContext | None) -> Listener:
    """Listen; port 0 picks a free one."""

    async def handler(incoming: BaseRequest) -> web.StreamResponse:
        try:
            return await _handle(server, incoming)
        except ConnectionResetError:
            # The client has disconnected.
            return web.Response()

    runner = web.ServerRunner(
        web.Server(handler, access_log=None, keepalive_timeout=75, lingering_time=0), shutdown_timeout=0.5
    )
    await runner.setup()
    site = web.TCPSite(runner, host, port, ssl_context=context, backlog=1024, reuse_address=True)
    await site.start()
    bound = runner.addresses[0]
    return Listener(host, bound[1], runner)


async def _handle(server: Server, incoming: BaseRequest) -> web.StreamResponse:
    body = await _body(incoming)
    request = Request(
        method=incoming.method,
        path=incoming.path,
        query=_query(incoming),
        headers=_headers_of(incoming),
        body=body or b"",
        peer=_peer(incoming),
    )
    response = error_response(request, errors.too_large()) if body is None else await server.handle(request)
    if response.stream is not None:
        return await _write_stream(incoming, response)
    return await _write_response(incoming, response)


async def _body(incoming: BaseRequest) -> bytes | None:
    """Read the body; None if it is too large.

    A body that is too large is read on, up to 64 MB: a client that is cut off while it sends never sees the 413.
    """
    if not incoming.can_read_body:
        return b""
    parts: list[bytes] = []
    size = 0
    async for chunk in incoming.content.iter_any():
        size += len(chunk)
        if size > DISCARD_MAX:
            break
        if size <= BODY_MAX:
            parts.append(chunk)
    return b"".join(parts) if size <= BODY_MAX else None


def _headers_of(incoming: BaseRequest) -> dict[str, str]:
    """Headers by lower-case name; values of a repeated header are joined by line feeds."""
    headers: dict[str, str] = {}
    for name, value in incoming.headers.items():
        name = name.lower()
        headers[name] = f"{headers[name]}\n{value}" if name in headers else value
    return headers


def _query(incoming: BaseRequest) -> dict[str, tuple[str, ...]]:
    query: dict[str, tuple[str, ...]] = {}
    for name, value in incoming.query.items():
        query[name] = (*query.get(name, ()), value)
    return query


def _peer(incoming: BaseRequest) -> Peer | None:
    transport = incoming.transport
    certificate = transport.get_extra_info("peercert") if transport is not None else None
    if not certificate:
        return None
    names: list[tuple[str, str]] = [pair for part in certificate.get("subject", ()) for pair in part]
    common = next((value for name, value in names if name == "commonName"), "")
    return Peer(common, tuple(value for name, value in names if name == "organizationName"))


async def _write_response(incoming: BaseRequest, response: Response) -> web.StreamResponse:
    chunks: Iterable[Chunk] = response.chunks if response.chunks is not None else (response.body,)
    size = sum(len(chunk) for chunk in chunks)
    answer = web.StreamResponse(status=response.status, headers=_headers(response))
    answer.headers["Content-Type"] = response.content_type
    if size >= GZIP_FROM and "gzip" in incoming.headers.get("Accept-Encoding", ""):
        return await _write_compressed(incoming, answer, chunks)
    answer.content_length = size
    await answer.prepare(incoming)
    if incoming.method != "HEAD" and response.status != 304:
        await _write(answer, chunks)
    await answer.write_eof()
    return answer


async def _write(answer: web.StreamResponse, chunks: Iterable[Chunk]) -> None:
    """Write in pieces and yield to the loop between them: writes to a fast reader never wait."""
    is_first = True
    for piece in _pieces(chunks):
        if not is_first:
            await asyncio.sleep(0)
        await answer.write(piece)
        is_first = False


def _split(chunks: Iterable[Chunk]) -> Iterable[Chunk]:
    for chunk in chunks:
        if len(chunk) <= _WRITE_SIZE:
            yield chunk
        else:
            yield from (chunk[at : at + _WRITE_SIZE] for at in range(0, len(chunk), _WRITE_SIZE))


def _pieces(chunks: Iterable[Chunk]) -> Iterable[bytes]:
    """Join or split the chunks into pieces of the size of one write."""
    pending: list[Chunk] = []
    size = 0
    for chunk in _split(chunks):
        pending.append(chunk)
        size += len(chunk)
        if size >= _WRITE_SIZE:
            yield b"".join(pending)
            pending, size = [], 0
    if pending:
        yield b"".join(pending)


async def _write_compressed(
    incoming: BaseRequest, answer: web.StreamResponse, chunks: Iterable[Chunk]
) -> web.StreamResponse:
    """Write compressed; the compression runs off the loop."""
    answer.headers["Content-Encoding"] = "gzip"
    answer.headers["Vary"] = "Accept-Encoding"
    answer.enable_chunked_encoding()
    await answer.prepare(incoming)
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    for piece in _pieces(chunks):
        packed = await asyncio.to_thread(packer.compress, piece)
        if packed:
            await answer.write(packed)
    await answer.write(packer.flush())
    await answer.write_eof()
    return answer


async def _write_stream(incoming: BaseRequest, response: Response) -> web.StreamResponse:
    assert response.stream is not None
    answer = web.StreamResponse(status=response.status, headers=_headers(response))
    answer.headers["Content-Type"] = response.content_type
    answer.enable_chunked_encoding()
    try:
        await answer.prepare(incoming)
        async for chunk in response.stream:
            await _write(answer, (chunk,))
        await answer.write_eof()
    except ConnectionError:
        pass
    finally:
        await response.stream.aclose()  # type: ignore[attr-defined]
    return answer


def _headers(response: Response) -> CIMultiDict[str]:

    headers: CIMultiDict[str] = CIMultiDict(_JSON_HEADERS)
    for name, value in response.headers:
        if name == "Cache-Control":
            headers[name] = value
        else:
            headers.add(name, value)
    return headers
