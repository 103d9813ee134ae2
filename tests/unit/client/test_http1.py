"""Requests on raw connections: responses of servers, and reuse of connections."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from nodeyard.client.errors import Withheld
from nodeyard.client.http1 import CannotConnect, Pool

REQUEST = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Script:
    """Server that sends the next text for each request, and closes the connection for None."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.connections = 0
        self.asked = []
        self.closed = asyncio.Event()
        self._news = asyncio.Condition()

    async def has_asked(self, count):
        async with self._news:
            await self._news.wait_for(lambda: len(self.asked) >= count)

    async def __call__(self, reader, writer):
        self.connections += 1
        try:
            while self.answers:
                request = await reader.readuntil(b"\r\n\r\n")
                async with self._news:
                    self.asked.append(request)
                    self._news.notify_all()
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if b"Connection: close" in answer:
                    break
            else:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.closed.set()


@asynccontextmanager
async def pool_on(script, keepalive=30.0, **options):
    server = await asyncio.start_server(script, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pool = Pool("127.0.0.1", port, server_name=None, keepalive=keepalive, **options)
    try:
        yield pool
    finally:
        pool.close()
        server.close()
        await server.wait_closed()


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (OK, b"ok"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n3\r\n, k\r\n0\r\n\r\n", b"ok, k"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    ],
    ids=["of a known length", "in chunks", "after a provisional one", "until the connection ends", "empty"],
)
async def test_an_answer_is_read_whole(answer, body):
    async with pool_on(Script(answer)) as pool:
        response = await pool.send("GET", REQUEST, None)
    assert (response.status, response.body) == (200, body)


async def test_header_names_are_in_lower_case_and_every_warning_is_kept():
    answer = b'HTTP/1.1 204 No Content\r\nX-Kind: Node\r\nWarning: 299 - "a"\r\nwarning: 299 - "b"\r\n\r\n'
    async with pool_on(Script(answer)) as pool:
        response = await pool.send("GET", REQUEST, None)
    assert response.headers["x-kind"] == "Node"
    assert list(response.headers) == ["x-kind", "warning"]
    assert response.warnings == ('299 - "a"', '299 - "b"')


async def test_headers_after_the_body_are_left_out():
    answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-After: 1\r\n\r\n"
    async with pool_on(Script(answer)) as pool:
        response = await pool.send("GET", REQUEST, None)
    assert (response.body, list(response.headers)) == (b"ok", ["transfer-encoding"])


async def test_a_connection_is_used_again():
    script = Script(OK, OK, OK)
    async with pool_on(script) as pool:
        for _ in range(3):
            await pool.send("PATCH", REQUEST, None)
    assert script.connections == 1


async def test_one_that_the_server_gives_up_is_not():
    script = Script(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", OK)
    async with pool_on(script) as pool:
        for _ in range(2):
            assert (await pool.send("PATCH", REQUEST, None)).body == b"ok"
    assert script.connections == 2


async def test_one_that_was_idle_too_long_is_not():
    script = Script(OK, OK)
    async with pool_on(script, keepalive=-1.0) as pool:
        for _ in range(2):
            await pool.send("PATCH", REQUEST, None)
    assert script.connections == 2


async def test_a_read_is_repeated_where_its_connection_turns_out_to_be_closed():
    script = Script(OK, None, OK)
    async with pool_on(script) as pool:
        await pool.send("GET", REQUEST, None)
        assert (await pool.send("GET", REQUEST, None)).body == b"ok"
    assert script.connections == 2


HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\nConnection: close\r\n\r\nhalf"


@pytest.mark.parametrize(
    ("method", "answer"), [("PATCH", None), ("GET", HALF)], ids=["a patch", "a read whose answer breaks off"]
)
async def test_what_may_have_been_done_is_not_repeated(method, answer):
    script = Script(OK, answer, OK)
    async with pool_on(script) as pool:
        await pool.send(method, REQUEST, None)
        with pytest.raises(ConnectionError):
            await pool.send(method, REQUEST, None)
    assert len(script.asked) == 2


async def test_what_may_not_be_sent_any_more_once_there_is_a_connection_leaves_that_to_the_next():
    script = Script(OK)
    async with pool_on(script) as pool:
        with pytest.raises(Withheld, match="not now"):
            await pool.send("DELETE", REQUEST, None, hold=lambda: "not now")
        assert (await pool.send("DELETE", REQUEST, None, hold=lambda: "")).body == b"ok"
    assert (script.connections, len(script.asked)) == (1, 1)


async def test_what_may_not_be_repeated_any_more_may_still_have_been_done():
    script = Script(OK, None, OK)
    async with pool_on(script) as pool:
        await pool.send("DELETE", REQUEST, None)
        with pytest.raises(ConnectionError):
            await pool.send("DELETE", REQUEST, None, hold=lambda: "not now" if len(script.asked) > 1 else "")
    assert len(script.asked) == 2


async def test_a_closed_pool_sends_nothing_again():
    """Closing the pool looks to a request in flight as if the server had closed an idle connection."""
    script = Script(OK, b"", OK)
    async with pool_on(script) as pool:
        await pool.send("DELETE", REQUEST, None)
        under_way = asyncio.create_task(pool.send("DELETE", REQUEST, None))
        await script.has_asked(2)
        pool.close()
        with pytest.raises(ConnectionError):
            await under_way
    assert (script.connections, len(script.asked)) == (1, 2)


async def test_a_closed_pool_sends_nothing_new():
    script = Script(OK)
    async with pool_on(script) as pool:
        connecting = asyncio.create_task(pool.send("DELETE", REQUEST, None))
        await asyncio.sleep(0)
        pool.close()
        for late in (connecting, pool.send("DELETE", REQUEST, None)):
            with pytest.raises(CannotConnect, match="the client is closed"):
                await late
    assert script.asked == []


async def test_what_is_no_http_is_said_to_be_none():
    async with pool_on(Script(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")) as pool:
        with pytest.raises(ConnectionError, match="not HTTP/1.1"):
            await pool.send("GET", REQUEST, None)


MIB = 1 << 20
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + b"x" * 3 * MIB, "the response is larger than 2 MiB"),
        (CHUNKED + b"100000\r\n%s\r\n" % (b"x" * MIB) * 3, "the response is larger than 2 MiB"),
        (CHUNKED + b"2\r\nxx\r\n" * 50_000, "the response is larger than 2 MiB"),
        (CHUNKED + b"0\r\n" + b"a: b\r\n" * 500_000, "the response is larger than 2 MiB"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"x" * 3 * MIB, "the response is larger than 2 MiB"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2 * MIB, "the head of the response is larger than 1 MiB"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300_000, "the head of the response is larger than 1 MiB"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, "the head of the response is larger than 1 MiB"),
    ],
    ids=[
        "of a known length",
        "in chunks",
        "in tiny chunks",
        "in headers after the body",
        "until the connection ends",
        "in one header",
        "in many headers",
        "in provisional answers",
    ],
)
async def test_an_answer_without_an_end_is_given_up(answer, says):
    script = Script(answer, OK)
    async with pool_on(script, largest=2 * MIB) as pool:
        with pytest.raises(ConnectionError, match=f"^{says}$"):
            await pool.send("GET", REQUEST, None, seconds=5)
        assert (await pool.send("GET", REQUEST, None)).body == b"ok"
    assert script.connections == 2


async def test_less_is_kept_of_an_error():
    answer = b"HTTP/1.1 500 Error\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 17 * MIB
    async with pool_on(Script(answer)) as pool:
        with pytest.raises(ConnectionError, match="^the response is larger than 16 MiB$"):
            await pool.send("GET", REQUEST, None, seconds=5)


async def test_answers_on_one_connection_do_not_add_up():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (MIB, b"x" * MIB)
    script = Script(*[answer] * 4)
    async with pool_on(script, largest=2 * MIB) as pool:
        for _ in range(4):
            assert len((await pool.send("GET", REQUEST, None)).body) == MIB
    assert script.connections == 1


async def test_a_late_answer_is_not_matched_to_the_next_request():
    script = Script(b"", OK)
    async with pool_on(script) as pool:
        with pytest.raises(TimeoutError):
            await pool.send("GET", REQUEST, None, seconds=0.05)
        await asyncio.wait_for(script.closed.wait(), 5)
        assert (await pool.send("GET", REQUEST, None)).body == b"ok"
    assert script.connections == 2


async def test_where_nobody_listens_nothing_was_sent():
    with pytest.raises(CannotConnect, match=r"127\.0\.0\.1:1: "):
        await Pool("127.0.0.1", 1, server_name=None, keepalive=1.0).send("GET", REQUEST, None)
