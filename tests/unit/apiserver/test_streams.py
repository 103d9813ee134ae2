"""A response stream is closed, also if it was never read."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from nodeyard.apiserver.listener import serve
from nodeyard.apiserver.transport import Response
from nodeyard.apiserver.watches import Stream
from nodeyard.testing.ports import LOOPBACK


class Source:
    """A stream of chunks that then blocks, and records its end."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks
        self.released = asyncio.Event()

    async def read(self):
        try:
            for chunk in self.chunks:
                yield chunk
            await asyncio.Event().wait()
        finally:
            self.released.set()


@pytest.mark.parametrize("chunks", [(), (b"a", b"b")], ids=["silent", "with chunks"])
async def test_a_stream_closed_before_reading_is_released(chunks):
    source = Source(*chunks)

    await Stream(source.read()).aclose()

    assert source.released.is_set()


async def test_a_stream_closed_while_reading_is_released():
    source = Source(b"a", b"b")
    stream = Stream(source.read())

    assert await anext(stream) == b"a"
    await stream.aclose()

    assert source.released.is_set()


async def test_a_stream_to_a_disconnected_client_is_released(monkeypatch):
    source = Source()

    class Streaming:
        async def handle(self, asked):
            return Response(200, stream=Stream(source.read()))

    async def gone(self, request):
        raise ConnectionResetError

    monkeypatch.setattr(web.StreamResponse, "prepare", gone)
    listener = await serve(Streaming(), LOOPBACK, 0, None)
    _, writer = await asyncio.open_connection(LOOPBACK, listener.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    await asyncio.wait_for(source.released.wait(), 10)

    writer.close()
    await listener.close()
