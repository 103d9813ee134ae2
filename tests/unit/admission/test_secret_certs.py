"""One Secret for all replicas: the first creates it, and the loser of a race reads it again."""

import asyncio
from datetime import timedelta

import pytest

from nodeyard.admission import secret_certs
from nodeyard.admission.certificates import RotationPolicy
from nodeyard.admission.secret_certs import SharedCertificates
from nodeyard.apiserver.server import Server
from nodeyard.client.errors import NotFound, TransportError
from nodeyard.client.resources import NAMESPACES, SECRETS
from nodeyard.kube.names import NAMESPACE, WEBHOOK_CERTIFICATES
from nodeyard.process.clock import VirtualClock
from nodeyard.sim.embedded import connect

HOST = "127.0.0.1"
TERMS = RotationPolicy(settle=30.0)


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
async def server(clock):
    server = Server(clock, seed=1)
    await server.start(())
    yield server
    await server.stop()


@pytest.fixture
def client(server):
    return connect(server)


@pytest.fixture
def replica(server, clock):
    def make(host=HOST, **options):
        return SharedCertificates(connect(server), host, TERMS, clock, **options)

    return make


async def secret(client):
    return await client.get(SECRETS, WEBHOOK_CERTIFICATES, NAMESPACE)


async def test_the_first_makes_the_secret_and_its_namespace(client, replica):
    served = await replica().refresh([])

    found = await secret(client)
    assert found["type"] == "kubernetes.io/tls"
    assert secret_certs.read(found).newest.pair == served.pair
    assert await client.get(NAMESPACES, NAMESPACE)


async def test_replicas_that_start_at_once_end_up_with_the_same(replica):
    served = await asyncio.gather(*(replica().refresh([]) for _ in range(5)))

    assert len({each.pair for each in served}) == 1


async def test_replicas_that_find_it_due_at_once_rotate_once(client, replica, clock):
    replicas = [replica() for _ in range(3)]
    before = {each.pair for each in await asyncio.gather(*(each.refresh([]) for each in replicas))}
    await clock.advance(timedelta(days=61).total_seconds())

    served = await asyncio.gather(*(each.refresh([]) for each in replicas))

    assert len({each.pair for each in served}) == 1
    issues = secret_certs.read(await secret(client))
    assert {issues.previous.pair} == before
    assert len(issues.authorities) == 2


async def test_the_new_certificate_waits_until_its_authority_has_been_trusted_for_a_while(replica, clock):
    one = replica()
    old = await one.refresh([])
    await clock.advance(timedelta(days=61).total_seconds())

    due = await one.refresh([old.bundle])
    assert due.pair == old.pair
    assert (await one.refresh([due.bundle])).pair == old.pair
    await clock.advance(TERMS.settle - 1)
    assert (await one.refresh([due.bundle, old.bundle])).pair == old.pair
    assert (await one.refresh([due.bundle])).pair == old.pair
    await clock.advance(TERMS.settle)

    assert (await one.refresh([due.bundle])).pair != old.pair


async def test_an_additional_name_is_added_for_all_replicas(client, replica):
    one, other = replica(), replica("nodeyard-pools.nodeyard-system.svc")
    await one.refresh([])

    await other.refresh([])

    assert secret_certs.read(await secret(client)).newest.names == {HOST, "nodeyard-pools.nodeyard-system.svc"}
    before = await secret(client)
    await one.refresh([])
    assert await secret(client) == before


async def test_a_secret_with_invalid_contents_is_rewritten(client, replica):
    one = replica()
    served = await one.refresh([])
    await client.patch(SECRETS, WEBHOOK_CERTIFICATES, {"data": {"tls.crt": "cnViYmlzaA=="}}, NAMESPACE)

    assert (await one.refresh([])).pair == served.pair
    assert secret_certs.read(await secret(client)).newest.pair == served.pair


async def test_in_observe_only_mode_the_secret_is_read_and_never_written(client, replica, clock):
    observer = replica(may_write=False)
    alone = await observer.refresh([])
    assert (await observer.refresh([])).pair == alone.pair
    with pytest.raises(NotFound):
        await secret(client)

    served = await replica().refresh([])
    await clock.advance(timedelta(days=61).total_seconds())

    assert (await observer.refresh([])).pair == served.pair


async def test_endless_races_are_reported(replica, monkeypatch):
    one = replica()

    async def lost(_self, _secret, _issues):
        return False

    monkeypatch.setattr(SharedCertificates, "_write", lost)
    with pytest.raises(TimeoutError, match="5 writes in a row conflicted"):
        await one.refresh([])


async def test_a_failing_server_keeps_the_cached_certificates(replica, monkeypatch):
    one = replica()
    served = await one.refresh([])

    async def failing(*_arguments):
        raise TransportError("cut", may_have_run=False)

    monkeypatch.setattr(one._client, "get", failing)
    with pytest.raises(TransportError):
        await one.refresh([])
    monkeypatch.undo()
    assert (await one.refresh([])).pair == served.pair
