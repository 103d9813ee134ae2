"""The in-process transport under virtual time."""

import asyncio

import pytest

from nodeyard.client.errors import TransportTimeout, Withheld
from nodeyard.client.transport import Request
from nodeyard.process.clock import VirtualClock
from nodeyard.sim.in_process import InProcessTransport

WATCH = Request("GET", "/w", idle_timeout=60)


class Answer:
    def __init__(self, status=200, body=b"", headers=(), stream=None):
        self.status = status
        self.headers = list(headers)
        self.stream = stream
        self._body = body

    def payload(self):
        return self._body


def transport(answer, clock=None, seen=None):
    async def exchange(method, path, query, headers, body):
        if seen is not None:
            seen.append((method, path, query, headers, body))
        return answer

    return InProcessTransport(exchange, clock or VirtualClock())


async def test_the_server_gets_lists_of_values_and_lower_case_headers():
    seen = []
    await transport(Answer(), seen=seen).send(
        Request("PATCH", "/x", query={"force": "true"}, headers={"Content-Type": "a/b"}, body=b"{}")
    )
    headers = {"accept": "application/json", "content-type": "a/b"}
    assert seen == [("PATCH", "/x", {"force": ("true",)}, headers, b"{}")]


async def test_a_request_that_may_not_be_sent_does_not_reach_the_server():
    seen = []
    with pytest.raises(Withheld, match="not now"):
        await transport(Answer(), seen=seen).send(Request("DELETE", "/x", hold=lambda: "not now"))
    assert seen == []


async def test_the_answer_comes_back_with_its_warnings():
    answer = Answer(201, b"made", [("Warning", '299 - "one"'), ("Retry-After", "1"), ("Warning", '299 - "two"')])
    response = await transport(answer).send(Request("POST", "/x"))
    assert (response.status, response.body, response.headers["retry-after"]) == (201, b"made", "1")
    assert response.warnings == ('299 - "one"', '299 - "two"')


async def ticking(clock, *pauses):
    for number, pause in enumerate(pauses):
        await clock.sleep(pause)
        yield str(number).encode()


async def test_a_stream_with_data_continues():
    clock = VirtualClock()
    async with transport(Answer(stream=ticking(clock, 50, 50, 50)), clock).stream(
        Request("GET", "/w", idle_timeout=60)
    ) as stream:
        reading = asyncio.create_task(_collect(stream.chunks))
        await clock.advance(200)
        assert await reading == [b"0", b"1", b"2"]


async def test_a_stream_without_data_is_detected_in_virtual_time():
    clock = VirtualClock()
    async with transport(Answer(stream=ticking(clock, 50, 500)), clock).stream(
        Request("GET", "/w", idle_timeout=60)
    ) as stream:
        reading = asyncio.create_task(_collect(stream.chunks))
        await clock.advance(105)
        assert not reading.done()
        await clock.advance(10)
        with pytest.raises(TransportTimeout, match="GET /w: no data for 60 s"):
            await reading
        assert not reading.cancelled()


async def test_a_reader_that_is_busy_elsewhere_is_not_disturbed():
    clock = VirtualClock()
    async with transport(Answer(stream=ticking(clock, 1, 1)), clock).stream(
        Request("GET", "/w", idle_timeout=60)
    ) as stream:
        chunks = aiter(stream.chunks)
        first = asyncio.create_task(_next(chunks))
        await clock.advance(1)
        assert await first == b"0"
        await clock.advance(1000)
        second = asyncio.create_task(_next(chunks))
        await clock.advance(2)
        assert await second == b"1"


async def test_cancelling_the_reader_is_no_idle_timeout():
    clock = VirtualClock()
    async with transport(Answer(stream=ticking(clock, 500)), clock).stream(
        Request("GET", "/w", idle_timeout=60)
    ) as stream:
        reading = asyncio.create_task(_collect(stream.chunks))
        await clock.advance(1)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_an_answer_that_is_no_stream_is_one_chunk():
    async with transport(Answer(403, b"no")).stream(WATCH) as stream:
        assert stream.status == 403
        assert await _collect(stream.chunks) == [b"no"]


async def _collect(chunks):
    return [chunk async for chunk in chunks]


async def _next(chunks):
    return await anext(chunks)
