"""Every write is noted on its way out, and nothing is changed by that."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from bench.load import Call
from bench.recorder import RecordingTransport
from bench.replay import recorded

from nodeyard.client.transport import Request, Response

NODE = "/api/v1/nodes/n1"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/nodeyard-system/leases/nodeyard-spares"


class Passed:
    """Answers everything, and knows what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Request] = []
        self.is_closed = False

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        return Response(200, {}, b"{}")

    @asynccontextmanager
    async def stream(self, request: Request):
        yield request.path

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def inner() -> Passed:
    return Passed()


@pytest.fixture
def transport(inner, tmp_path) -> RecordingTransport:
    return RecordingTransport(inner, tmp_path / "writes")


async def test_a_write_is_passed_on_and_kept_with_its_query_type_and_body(transport, inner, tmp_path):
    request = Request(
        "PATCH",
        NODE,
        query={"fieldManager": "nodeyard spares"},
        headers={"Content-Type": "application/merge-patch+json"},
        body=b'{"spec":{}}',
    )

    answer = await transport.send(request)

    assert answer.status == 200
    assert inner.asked == [request]
    await transport.close()
    kept = Call("PATCH", f"{NODE}?fieldManager=nodeyard%20spares", b'{"spec":{}}', "application/merge-patch+json")
    assert recorded(tmp_path / "writes") == [kept]


async def test_reads_are_passed_on_and_not_kept(transport, inner, tmp_path):
    await transport.send(Request("GET", NODE))
    async with transport.stream(Request("GET", "/api/v1/nodes")) as stream:
        assert stream == "/api/v1/nodes"
    await transport.close()

    assert len(inner.asked) == 1
    assert recorded(tmp_path / "writes") == []


async def test_renewals_of_the_operators_own_lease_are_not_the_fleets(transport, tmp_path):
    await transport.send(Request("PATCH", LEASE, body=b"{}"))
    await transport.send(Request("PATCH", NODE, body=b"{}"))
    await transport.close()

    assert [call.path for call in recorded(tmp_path / "writes")] == [NODE]


async def test_closing_closes_what_is_behind_it(transport, inner):
    await transport.close()

    assert inner.is_closed
