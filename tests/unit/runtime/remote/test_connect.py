"""A remote cluster over a real connection."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from nodeyard.client.api import Client
from nodeyard.client.errors import TransportError, TransportTimeout
from nodeyard.client.resources import NODES
from nodeyard.client.transport import Request
from nodeyard.runtime.capability import RemoteClusterRef
from nodeyard.runtime.remote import connect


def kubeconfig(server):
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
    ).encode()


HEAD = b"HTTP/1.1 200 OK\r\n"


@asynccontextmanager
async def leaf_that_says(beginning, then):
    """Return a leaf that repeats its last answer forever."""

    async def answer(_reader, writer):
        writer.write(beginning)
        try:
            while True:
                writer.write(then * 10_000)
                await writer.drain()
        except ConnectionError:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    leaf = connect.connect_by_kubeconfig(RemoteClusterRef("leaf-1", kubeconfig(f"http://127.0.0.1:{port}")))
    try:
        yield leaf
    finally:
        await leaf.close()
        server.close()


async def test_an_answer_without_an_end_does_not_fill_our_memory(monkeypatch):
    monkeypatch.setattr(connect, "RESPONSE_BYTES", 1 << 20)
    async with leaf_that_says(HEAD + b"\r\n", b"[[[[") as leaf:
        with pytest.raises(TransportError, match="the response is larger than 1 MiB"):
            await leaf.send(Request("GET", "/api/v1/nodes", timeout=5))


@pytest.mark.parametrize(
    ("beginning", "then"),
    [(HEAD + b"\r\n", b"[[[["), (HEAD + b"X: ", b"x"), (HEAD, b"a: b\r\n")],
    ids=["event", "header", "number of headers"],
)
async def test_a_watch_event_without_an_end_does_not_fill_our_memory(beginning, then):
    async with leaf_that_says(beginning, then) as leaf:
        with pytest.raises(TransportError) as caught:
            async with Client(leaf, timeout=5).watch(NODES) as events:
                await anext(events)
    assert not isinstance(caught.value, TransportTimeout)
