"""The connection to one remote cluster, with faked responses."""

import asyncio
import json
from random import Random

import pytest

from nodeyard.client.errors import ConfigError, TransportError
from nodeyard.client.transport import Request, Response
from nodeyard.runtime.capability import RemoteClusterRef, SecretKey
from nodeyard.runtime.remote import connection
from nodeyard.runtime.remote.connect import KubeconfigUnreadable
from nodeyard.runtime.remote.connection import PROBE_SECONDS, PROBE_TIMEOUT_SECONDS, READ_SECONDS, Connection
from nodeyard.runtime.remote.transport import RemoteTransport


def namespace(uid):
    return Response(200, {}, json.dumps({"metadata": {"name": "kube-system", "uid": uid}}).encode())


def status(code, message="no", reason=""):
    body = {"kind": "Status", "status": "Failure", "code": code, "message": message, "reason": reason}
    return Response(code, {}, json.dumps(body).encode())


class Far:
    """Fake transport to the remote cluster."""

    def __init__(self, harness):
        self._harness = harness
        self.is_open = True

    async def send(self, request):
        assert self.is_open
        return self._harness.said_version() if request.path == "/version" else await self._harness.answered()

    async def close(self):
        self.is_open = False


class Harness:
    """Fake remote cluster that responds with `answer`, and listener of the connection that keeps a diary."""

    def __init__(self, clock):
        self.clock = clock
        self.answer = namespace("u1")
        self.version = Response(200, {}, b'{"gitVersion": "v1.36.4"}')
        self.versions_asked = 0
        self.versions = []
        self.diary = []
        self.given = RemoteClusterRef("leaf-1", b"first")
        self.connections = []
        self.probes = 0
        self.connecting = asyncio.Semaphore(1)
        self.transport = RemoteTransport("leaf-1", lambda: self.connection.probe_soon())
        self.connection = Connection(
            self.given, self.connect, self.transport, self, clock=clock, random=Random(1), connecting=self.connecting
        )
        self.task = None

    # the remote cluster

    def connect(self, given):
        if given.kubeconfig == b"refused":
            raise ConfigError("user u: exec: commands are not run")
        self.connections.append(Far(self))
        return self.connections[-1]

    @property
    def open(self):
        return sum(each.is_open for each in self.connections)

    async def answered(self):
        self.probes += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            await asyncio.Event().wait()
        return self.answer

    def said_version(self):
        self.versions_asked += 1
        if isinstance(self.version, Exception):
            raise self.version
        return self.version

    # the listener

    def on_version(self, version):
        self.versions.append((version, tuple(self.diary)))

    async def forget(self):
        self.diary.append("forget")

    async def on_connected(self, uid):
        self.diary.append(f"made {uid}")

    def on_disconnected(self, why):
        self.diary.append(f"lost {why}")

    def read(self):
        found, self.diary = self.diary, []
        return found

    async def run(self):
        self.task = asyncio.create_task(self.connection.run())
        await self.clock.advance(0)

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
async def harness(clock):
    harness = Harness(clock)
    yield harness
    await harness.stop()
    assert harness.open == 0


async def connected(harness):
    await harness.run()
    assert harness.read() == ["forget", "made u1"]


@pytest.mark.parametrize("uid", ["u" * 65, "s3cret: of the server", "u1\n", ""])
async def test_a_uid_that_no_server_makes_identifies_nothing(harness, uid):
    harness.answer = namespace(uid)
    await harness.run()
    assert harness.read() == ["forget", "made "]


async def probed(harness, clock, times=1):
    """Advance until this many probes were sent."""
    wanted = harness.probes + times
    while harness.probes < wanted:
        await clock.advance(0.1)


async def test_a_healthy_connection_reports_nothing(harness, clock):
    await connected(harness)
    await clock.advance(10 * PROBE_SECONDS)
    assert harness.read() == []
    assert 11 <= harness.probes <= 14


async def test_one_failure_is_no_loss(harness, clock):
    await connected(harness)
    harness.answer = TransportError("cut", may_have_run=False)
    await probed(harness, clock)
    harness.answer = namespace("u1")
    await clock.advance(60)
    assert harness.read() == []


async def test_two_failures_are(harness, clock):
    await connected(harness)
    harness.answer = TransportError("cut", may_have_run=False)
    await probed(harness, clock, times=2)
    assert harness.read() == ["lost cut"]
    harness.answer = namespace("u1")
    await clock.advance(5)
    assert harness.read() == ["made u1"], "the same cluster: nothing is forgotten"


async def test_rejected_credentials_are_a_loss_at_once(harness, clock):
    await connected(harness)
    harness.answer = status(401, "Unauthorized")
    await probed(harness, clock)
    assert harness.read() == ["lost the credentials are rejected: the server answered 401"]


async def test_a_server_that_is_silent_or_out_of_order_is_lost_too(harness, clock):
    await connected(harness)
    for answer, why in (
        (None, f"no answer in {PROBE_TIMEOUT_SECONDS:g} s"),
        (status(503, "starting"), "the server answered 503"),
    ):
        harness.answer = answer
        await clock.advance(PROBE_SECONDS + 2 * PROBE_TIMEOUT_SECONDS + 2)
        assert f"lost {why}" in harness.read()
        harness.answer = namespace("u1")
        await clock.advance(70)
        assert harness.read()[-1] == "made u1"


async def test_a_server_that_answers_429_is_connected(harness, clock):
    await connected(harness)
    harness.answer = status(429)
    await clock.advance(5 * PROBE_SECONDS)
    assert harness.read() == []


async def test_a_server_that_answers_429_at_first_is_not_identified(harness, clock):
    harness.answer = status(429, "later")
    await harness.run()
    assert harness.read() == ["lost the server answered 429"]
    harness.answer = namespace("u1")
    await clock.advance(5)
    assert harness.read() == ["forget", "made u1"]


async def test_a_server_that_does_not_show_the_namespace_is_there_without_a_name(harness, clock):
    harness.answer = status(403, "forbidden", "Forbidden")
    await harness.run()
    assert harness.read() == ["forget", "made "]
    harness.answer = namespace("u1")
    await clock.advance(PROBE_SECONDS)
    assert harness.read() == ["made u1"], "it is known now, and it is the one it was"


async def test_another_cluster_at_the_same_address_restarts_the_connection(harness, clock):
    await connected(harness)
    harness.answer = namespace("u2")
    await clock.advance(PROBE_SECONDS)
    assert harness.read() == ["lost another cluster responds at its address", "forget", "made u2"]


async def test_a_connection_error_triggers_one_early_probe(harness, clock):
    await connected(harness)
    for _ in range(100):
        harness.connection.probe_soon()
        await clock.advance(0.01)
    await clock.advance(2)
    assert 2 <= harness.probes <= 4


async def test_new_credentials_take_the_place_of_the_old_ones_without_a_gap(harness, clock):
    await connected(harness)
    harness.connection.update(RemoteClusterRef("leaf-1", b"second"))
    await clock.advance(0.1)
    assert (harness.read(), harness.open) == (["made u1"], 1)


async def test_new_credentials_that_do_not_work_leave_nothing_of_the_old_ones(harness, clock):
    await connected(harness)
    harness.answer = status(401, "Unauthorized")
    harness.connection.update(RemoteClusterRef("leaf-1", b"second"))
    await clock.advance(0.1)
    assert harness.read() == ["lost the credentials are rejected: the server answered 401"]
    with pytest.raises(TransportError, match="not connected"):
        await harness.transport.send(Request("GET", "/"))


async def test_a_refused_kubeconfig_is_not_tried_again_until_it_changes(harness, clock):
    harness.connection.update(RemoteClusterRef("leaf-1", b"refused"))
    await harness.run()
    await clock.advance(600)
    assert harness.read() == ["lost the kubeconfig is refused: user u: exec: commands are not run"]
    harness.connection.update(RemoteClusterRef("leaf-1", b"better"))
    await clock.advance(0.1)
    assert harness.read() == ["forget", "made u1"]


async def test_an_invalid_response_is_no_contact(harness, clock):
    harness.answer = Response(200, {}, b"<html>")
    await harness.run()
    [said] = harness.read()
    assert said.startswith("lost ")
    harness.answer = Response(200, {}, b"{}")
    await clock.advance(5)
    assert harness.read()[-1].startswith("lost ")


async def test_stopping_closes_every_connection(harness, clock):
    await connected(harness)
    assert harness.open == 1
    harness.answer = None
    harness.connection.update(RemoteClusterRef("leaf-1", b"second"))
    await clock.advance(0.1)
    assert harness.open == 2
    await harness.stop()
    assert harness.open == 0


async def test_the_version_is_known_before_the_connection_is_reported(harness):
    await connected(harness)
    assert harness.versions == [("v1.36.4", ("forget",))]


async def test_a_server_without_a_version_is_connected_and_asked_again_with_each_probe(harness, clock):
    harness.version = TransportError("no", may_have_run=True)
    await connected(harness)
    assert harness.versions == []
    harness.version = Response(200, {}, b'{"gitVersion": "v1.37.0"}')
    await clock.advance(PROBE_SECONDS)
    assert [version for version, _ in harness.versions] == ["v1.37.0"]
    asked = harness.versions_asked
    await clock.advance(4 * PROBE_SECONDS)
    assert harness.versions_asked == asked


@pytest.mark.parametrize("answer", [status(403), Response(200, {}, b"<html>"), Response(200, {}, b"{}")])
async def test_an_invalid_version_does_not_disconnect(harness, answer):
    harness.version = answer
    await connected(harness)
    assert harness.versions == []


async def test_the_version_is_requested_again_when_the_connection_is_restored(harness, clock):
    await connected(harness)
    harness.version = Response(200, {}, b'{"gitVersion": "v1.37.0"}')
    harness.answer = TransportError("down", may_have_run=True)
    await clock.advance(2 * PROBE_SECONDS)
    harness.answer = namespace("u1")
    await clock.advance(120)
    assert [version for version, _ in harness.versions] == ["v1.36.4", "v1.37.0"]


# a kubeconfig in a Secret

SECRET = SecretKey("capi-prod", "prod-kubeconfig", "value")


class Secrets(Harness):
    """A harness whose kubeconfig is in a Secret."""

    def __init__(self, clock):
        super().__init__(clock)
        self.content = b"first"
        self.reads = 0
        self.used = []
        self.connection = Connection(
            RemoteClusterRef("leaf-1", secret=SECRET),
            self.connect,
            self.transport,
            self,
            clock=clock,
            random=Random(1),
            connecting=self.connecting,
            read=self.read_secret,
        )

    def connect(self, given):
        self.used.append(given.kubeconfig)
        return super().connect(given)

    async def read_secret(self, secret):
        assert secret == SECRET
        self.reads += 1
        if isinstance(self.content, Exception):
            raise self.content
        return self.content


@pytest.fixture
async def secrets(clock, monkeypatch):
    # Other tests in this process may have set a shorter interval.
    monkeypatch.setattr(connection, "READ_SECONDS", READ_SECONDS)
    harness = Secrets(clock)
    yield harness
    await harness.stop()
    assert harness.open == 0


async def test_a_kubeconfig_is_read_from_its_secret_for_the_contact_and_once_a_minute(secrets, clock):
    await connected(secrets)
    await clock.advance(10 * READ_SECONDS)
    assert (secrets.used, secrets.read()) == ([b"first"], [])
    assert 8 <= secrets.reads <= 11


async def test_a_kubeconfig_that_is_replaced_in_its_secret_is_used_without_a_gap(secrets, clock):
    await connected(secrets)
    secrets.content = b"second"
    await clock.advance(READ_SECONDS + PROBE_SECONDS)
    assert (secrets.used, secrets.read(), secrets.open) == ([b"first", b"second"], ["made u1"], 1)


async def test_a_deleted_secret_keeps_a_working_connection(secrets, clock):
    await connected(secrets)
    secrets.content = KubeconfigUnreadable("Secret capi-prod/prod-kubeconfig with its kubeconfig does not exist")
    await clock.advance(5 * READ_SECONDS)
    assert secrets.read() == []


async def test_a_secret_that_comes_late_is_reported_missing_and_read_again(secrets, clock):
    secrets.content = KubeconfigUnreadable("Secret capi-prod/prod-kubeconfig with its kubeconfig does not exist")
    await secrets.run()
    assert secrets.read() == ["lost Secret capi-prod/prod-kubeconfig with its kubeconfig does not exist"]
    secrets.content = b"first"
    await clock.advance(PROBE_SECONDS)
    assert secrets.read() == ["forget", "made u1"]


async def test_a_refused_kubeconfig_in_a_secret_is_looked_at_again(secrets, clock):
    secrets.content = b"refused"
    await secrets.run()
    assert secrets.read() == ["lost the kubeconfig is refused: user u: exec: commands are not run"]
    secrets.content = b"better"
    await clock.advance(READ_SECONDS)
    assert secrets.read() == ["forget", "made u1"]
