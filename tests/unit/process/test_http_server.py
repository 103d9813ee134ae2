"""Limits on connections of untrusted clients: number and duration, also on the operator's event loop."""

import asyncio
import resource
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
import uvloop
from aiohttp import web

from nodeyard.admission.certificates import IssuedCertificate
from nodeyard.admission.server import server_context
from nodeyard.process import http_server
from nodeyard.process.http_server import Budget, HttpServer, Limits, raise_file_limit

HOST = "127.0.0.1"
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


@asynccontextmanager
async def serving(limits=None, *, context=None):
    """Return the port, the event that `/slow` waits for, and a queue of its requests."""
    app, gate, asked = web.Application(), asyncio.Event(), asyncio.Queue()

    async def answer(_request):
        return web.Response(text="ok")

    async def answer_later(_request):
        asked.put_nowait("slow")
        await gate.wait()
        return web.Response(text="late")

    app.router.add_get("/", answer)
    app.router.add_get("/slow", answer_later)
    server = HttpServer(app, limits or Limits(stop_seconds=0.1), context=context)
    port = server.bind(HOST, 0)
    await server.start()
    try:
        yield port, gate, asked
    finally:
        await server.close()


async def is_answered(port, **options):
    reader, writer = await asyncio.open_connection(HOST, port, **options)
    try:
        return await asks(reader, writer)
    finally:
        writer.close()


async def asks(reader, writer, request=REQUEST):
    writer.write(request)
    try:
        return b"200 OK" in await asyncio.wait_for(reader.readline(), 10)
    except ConnectionError:
        return False


async def is_closed(reader):
    """Return whether the server closes it within a time that is generous for a test and short for an attack."""
    try:
        return await asyncio.wait_for(reader.read(), 10) == b""
    except ConnectionError:
        return True


@LOOPS
def test_half_sent_heads_are_given_up(run, monkeypatch):
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(http_server, "SWEEP_SECONDS", 0.05)

    async def attack():
        async with serving() as (port, *_):
            halves = [await asyncio.open_connection(HOST, port) for _ in range(50)]
            for _, writer in halves[:25]:
                writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nX-")
            assert all(await asyncio.gather(*(is_closed(reader) for reader, _ in halves)))
            assert await is_answered(port)

    run(attack())


@LOOPS
def test_a_further_request_has_as_little_time_once_it_has_begun(run, monkeypatch):
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(http_server, "SWEEP_SECONDS", 0.05)

    async def attack():
        async with serving() as (port, *_):
            idle, slow = [await asyncio.open_connection(HOST, port) for _ in range(2)]
            for reader, writer in (idle, slow):
                assert await asks(reader, writer)
                await reader.readuntil(b"ok")
            slow[1].write(b"GET / HT")
            assert await is_closed(slow[0])
            assert await asks(*idle), "one that rests between requests is kept"

    run(attack())


@LOOPS
def test_one_peer_with_all_connections_keeps_nobody_out(run):
    async def attack():
        async with serving(Limits(connections=20, per_peer=10, stop_seconds=0.1)) as (port, *_):
            held = [await asyncio.open_connection(HOST, port) for _ in range(30)]
            assert await is_answered(port)
            assert await is_closed(held[0][0]), "the longest idle one made room"

    run(attack())


@LOOPS
def test_connections_leave_half_of_the_open_files_to_others(run, monkeypatch):
    monkeypatch.setattr(http_server.resource, "getrlimit", lambda _which: (20, 20))

    async def attack():
        async with serving() as (port, *_):
            held = [await asyncio.open_connection(HOST, port) for _ in range(10)]
            assert await is_answered(port)
            assert await is_closed(held[0][0]), "the longest idle one made room"

    run(attack())


@LOOPS
def test_a_connection_in_use_is_not_closed_for_new_ones(run):
    async def attack():
        async with serving(Limits(connections=2, per_peer=2, stop_seconds=0.1)) as (port, gate, asked):
            busy = [await asyncio.open_connection(HOST, port) for _ in range(2)]
            for _, writer in busy:
                writer.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
                await asked.get()
            reader, _ = await asyncio.open_connection(HOST, port)
            assert await is_closed(reader), "there is no room"
            gate.set()
            answers = await asyncio.gather(*(each.readline() for each, _ in busy))
            assert all(b"200 OK" in each for each in answers)

    run(attack())


@LOOPS
def test_handshakes_that_do_not_end_take_no_room(run):
    pair = IssuedCertificate.make([HOST], timedelta(days=1), datetime.now(UTC))

    async def attack(context, trust):
        async with serving(Limits(connections=8, per_peer=8, stop_seconds=0.1), context=context) as (port, *_):
            silent = [await asyncio.open_connection(HOST, port) for _ in range(8)]
            silent[7][1].write(b"this is not TLS")
            assert await is_answered(port, ssl=trust)
            assert await is_answered(port, ssl=trust)

    run(attack(server_context(pair.pair, None), ssl.create_default_context(cadata=pair.authority.decode())))


def test_each_peer_has_a_budget_of_its_own_that_fills_up_again():
    budget = Budget(rate=10, burst=2)

    assert [budget.take("a", 0.0) for _ in range(3)] == [True, True, False]
    assert budget.take("b", 0.0)
    assert not budget.take("a", 0.05)
    assert budget.take("a", 0.15)


def test_no_more_peers_are_remembered_than_there_is_room_for():
    budget = Budget(rate=1, burst=1, most_peers=3)

    for number in range(100):
        assert budget.take(f"peer-{number}", number * 0.01)
    assert len(budget._left) <= 3
    assert not budget.take("peer-99", 1.0), "who asked just now is still known"


def test_the_limit_of_open_files_is_raised():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(before[1], 65536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
