"""One probe of a leaf, and its result."""

import asyncio
import json
from datetime import timedelta
from email.utils import format_datetime

import pytest

from nodeyard.capabilities.clustertree.leases.liveness import Alive, Failed, Rejected
from nodeyard.capabilities.clustertree.leases.probe import Probe
from nodeyard.client.errors import ConfigError, TransportError
from nodeyard.client.transport import Request, Response


def status(code, message):
    return json.dumps({"kind": "Status", "status": "Failure", "code": code, "message": message}).encode()


class Server:
    """Returns the same response to every request."""

    def __init__(self):
        self.response = Response(200, {}, b"ok")
        self.error = None
        self.hangs = False
        self.given = []
        self.closed = []
        self.close_error = None

    def connect(self, elsewhere):
        self.given.append(elsewhere)
        return Wire(self, elsewhere.kubeconfig)


class Wire:
    def __init__(self, server, kubeconfig):
        self._server = server
        self._kubeconfig = kubeconfig

    async def send(self, request):
        assert request == Request("GET", "/readyz", timeout=5.0, retry=False)
        if self._server.error is not None:
            raise self._server.error
        if self._server.hangs:
            await asyncio.Event().wait()
        return self._server.response

    async def close(self):
        self._server.closed.append(self._kubeconfig)
        if self._server.close_error is not None:
            raise self._server.close_error


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def probe(server, clock):
    return Probe("oak", server.connect, clock)


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (Response(200, {}, b"ok"), Alive()),
        (Response(401, {}, status(401, "Unauthorized")), Rejected("GET /readyz returned 401")),
        (Response(500, {}, b"[-]etcd failed"), Failed("GET /readyz returned 500")),
        (Response(503, {}, b""), Failed("GET /readyz returned 503")),
        (Response(429, {}, status(429, "too many")), Failed("GET /readyz returned 429")),
        (Response(302, {}, b""), Failed("GET /readyz returned 302")),
        (Response(404, {}, b"x" * 400), Failed("GET /readyz returned 404")),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Response) else "",
)
async def test_an_answer_is_classified(server, probe, response, answer):
    server.response = response
    assert (await probe.ask(b"first")).answer == answer


async def test_a_forbidden_probe_names_the_right_to_grant(server, probe):
    server.response = Response(403, {}, status(403, 'User "u" cannot get path "/readyz"'))
    answer = (await probe.ask(b"first")).answer
    assert isinstance(answer, Rejected)
    assert answer.message == "GET /readyz returned 403; grant the user get on this nonResourceURL"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (TransportError("GET /readyz: cannot connect", may_have_run=False), "GET /readyz: cannot connect"),
        (ConfigError("entry x is no PEM"), "the kubeconfig is refused: entry x is no PEM"),
        (RuntimeError(), "RuntimeError"),
    ],
    ids=["no connection", "kubeconfig", "a fault"],
)
async def test_an_error_before_the_request_is_a_failure(server, probe, error, message):
    server.error = error
    assert (await probe.ask(b"first")).answer == Failed(message)


async def test_a_leaf_without_a_kubeconfig_is_not_probed(server, probe):
    assert (await probe.ask(b"")).answer == Failed("no kubeconfig")
    assert server.given == []


async def test_a_leaf_has_five_seconds(server, probe, clock):
    server.hangs = True
    asking = asyncio.create_task(probe.ask(b"first"))
    await clock.advance(4.9)
    assert not asking.done()
    await clock.advance(0.2)
    assert asking.result().answer == Failed("GET /readyz: no answer in 5 s")


async def test_connections_are_kept_until_the_kubeconfig_is_another(server, probe):
    for kubeconfig in (b"first", b"first", b"second", b"second"):
        await probe.ask(kubeconfig)
    assert [each.kubeconfig for each in server.given] == [b"first", b"second"]
    assert server.closed == [b"first"]
    await probe.close()
    assert server.closed == [b"first", b"second"]


async def test_connections_that_do_not_close_keep_nobody_from_new_ones(server, probe):
    await probe.ask(b"first")
    server.close_error = OSError("bad descriptor")
    assert (await probe.ask(b"second")).answer == Alive()


@pytest.mark.parametrize("seconds", [-90, 0, 3600])
async def test_the_leafs_clock_is_read_from_its_answer(server, probe, clock, seconds):
    date = format_datetime(clock.now() + timedelta(seconds=seconds), usegmt=True)
    server.response = Response(200, {"date": date}, b"ok")
    assert (await probe.ask(b"first")).skew_seconds == pytest.approx(seconds, abs=0.6)


@pytest.mark.parametrize("headers", [{}, {"date": "yesterday"}], ids=["none", "nonsense"])
async def test_a_leaf_without_a_date_header_is_alive_all_the_same(server, probe, headers):
    server.response = Response(200, headers, b"ok")
    assert await probe.ask(b"first") == (Alive(), None)
