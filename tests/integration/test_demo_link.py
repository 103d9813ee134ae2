"""The link between the operator and a leaf cluster of the demo, which can be cut and opened again."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from nodeyard.demo.leaf_clusters import Link


@asynccontextmanager
async def link_to_echo():
    async def echo(reader, writer):
        while data := await reader.read(100):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    link = Link(server.sockets[0].getsockname()[1])
    await link.open()
    try:
        yield link
    finally:
        link.cut()
        server.close()


async def ask(link, connection=None):
    reader, writer = connection or await asyncio.open_connection("127.0.0.1", link.port)
    writer.write(b"hello")
    return await reader.read(100), (reader, writer)


async def test_it_forwards_both_ways():
    async with link_to_echo() as link:
        answer, _ = await ask(link)
        assert answer == b"hello"


async def test_a_cut_ends_open_connections_and_refuses_new_ones():
    async with link_to_echo() as link:
        _, (reader, _) = await ask(link)
        link.cut()
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(_read_to_end(reader), 10)
        with pytest.raises(ConnectionError):
            await ask(link)


async def _read_to_end(reader):
    """Read bytes; an aborted connection counts as closed."""
    if not await reader.read(100):
        raise ConnectionResetError


async def test_it_opens_again_on_the_same_port():
    async with link_to_echo() as link:
        port = link.port
        link.cut()
        await link.open()
        assert link.port == port
        assert (await ask(link))[0] == b"hello"
