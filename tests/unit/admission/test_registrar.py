"""Registration of webhooks: paths and owners."""

import pytest
from tests.builders.managers import FaultyTransport
from tests.builders.rule_webhooks import GUARDED

from nodeyard.admission.client_config import ByService
from nodeyard.admission.configurations import VALIDATING, paths
from nodeyard.admission.metrics import AdmissionMetrics
from nodeyard.admission.registrar import FORMER_SECONDS, TOKEN_SECONDS, Paths, Registrar
from nodeyard.apiserver.server import Server
from nodeyard.process.metrics import Metrics
from nodeyard.sim.embedded import connect

REACH = ByService("nodeyard-system", "nodeyard-webhooks")
NAME = "nodeyard-labels"


@pytest.fixture
async def client(clock):
    server = Server(clock=clock)
    await server.start(())
    client = connect(server)
    client.transport = FaultyTransport(client.transport)
    yield client
    await server.stop()


@pytest.fixture
def replica(client, clock):
    """Build a second registrar that may write."""

    def start():
        return Registrar(client, AdmissionMetrics(Metrics()), clock, Paths(clock))

    return start


async def register(registrar, **options):
    await registrar.read(GUARDED)
    await registrar.register(GUARDED, REACH, b"ca", **options)


async def path_on(client):
    (path,) = paths([await client.get(VALIDATING, NAME)], "labels")
    return path


async def test_the_path_cannot_be_guessed_and_every_replica_learns_it(client, replica):
    leader, follower = replica(), replica()
    await register(leader)
    path = await path_on(client)

    start, _, token = path.rpartition("/")
    assert (start, len(token)) == ("/validate/labels/rules", 32)
    assert path in leader.paths
    assert path not in follower.paths
    await follower.read(GUARDED)
    assert path in follower.paths
    assert "/validate/labels/rules" not in follower.paths


async def test_another_leader_keeps_the_path(client, replica):
    await register(replica())
    path = await path_on(client)
    writes = len(client.transport.writes)

    await register(replica())

    assert await path_on(client) == path
    assert len(client.transport.writes) == writes


async def test_the_path_changes_every_hour_and_the_former_is_good_for_a_while(client, replica, clock):
    registrar = replica()
    await register(registrar)
    former = await path_on(client)
    await clock.advance(TOKEN_SECONDS + 1)

    await register(registrar)

    path = await path_on(client)
    assert path != former
    assert former in registrar.paths
    await clock.advance(FORMER_SECONDS + 1)
    await registrar.read(GUARDED)
    assert former not in registrar.paths
    assert path in registrar.paths


async def test_nothing_is_written_after_the_lease_is_lost(client, replica):
    await register(replica(), may_write=lambda: False)

    assert client.transport.writes == []
