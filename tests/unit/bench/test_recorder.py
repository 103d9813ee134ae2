"""The recording transport: records writes, passes every request on unchanged."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from bench.load import Call
from bench.recorder import RecordingTransport
from bench.replay import read_record

from nodeyard.client.transport import Request, Response

NODE = "/api/v1/nodes/n1"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/nodeyard-system/leases/nodeyard-spares"


class InnerTransport:
    """Answers every request and keeps it."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.is_closed = False

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        return Response(200, {}, b"{}")

    @asynccontextmanager
    async def stream(self, request: Request):
        yield request.path

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def inner() -> InnerTransport:
    return InnerTransport()


@pytest.fixture
def transport(inner, tmp_path) -> RecordingTransport:
    return RecordingTransport(inner, tmp_path / "writes")


async def test_a_write_is_passed_on_and_recorded_with_query_content_type_and_body(transport, inner, tmp_path):
    request = Request(
        "PATCH",
        NODE,
        query={"fieldManager": "nodeyard spares"},
        headers={"Content-Type": "application/merge-patch+json"},
        body=b'{"spec":{}}',
    )

    answer = await transport.send(request)

    assert answer.status == 200
    assert inner.requests == [request]
    await transport.close()
    kept = Call("PATCH", f"{NODE}?fieldManager=nodeyard%20spares", b'{"spec":{}}', "application/merge-patch+json")
    assert read_record(tmp_path / "writes") == [kept]


async def test_reads_are_passed_on_and_not_recorded(transport, inner, tmp_path):
    await transport.send(Request("GET", NODE))
    async with transport.stream(Request("GET", "/api/v1/nodes")) as stream:
        assert stream == "/api/v1/nodes"
    await transport.close()

    assert len(inner.requests) == 1
    assert read_record(tmp_path / "writes") == []


async def test_renewals_of_the_operators_own_lease_are_not_read(transport, tmp_path):
    await transport.send(Request("PATCH", LEASE, body=b"{}"))
    await transport.send(Request("PATCH", NODE, body=b"{}"))
    await transport.close()

    assert [call.path for call in read_record(tmp_path / "writes")] == [NODE]


async def test_close_closes_the_inner_transport(transport, inner):
    await transport.close()

    assert inner.is_closed
