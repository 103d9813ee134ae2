"""Answers of /readyz about certificates that cannot be renewed, under virtual time."""

from datetime import timedelta

import pytest
from tests.builders.managers import FaultyTransport, cut

from nodeyard.admission.certificates import RotationPolicy
from nodeyard.admission.manager import Admission, Webhooks
from nodeyard.apiserver.server import Server
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.health import Address, Health
from nodeyard.sim.embedded import connect

HERE = Address("127.0.0.1", 0)
BRIEF = RotationPolicy(valid=timedelta(seconds=60), renew_before=timedelta(seconds=30), interval=1.0)


@pytest.fixture
async def client(clock):
    server = Server(clock=clock)
    await server.start(())
    client = connect(server)
    client.transport = FaultyTransport(client.transport)
    yield client
    await server.stop()


@pytest.fixture
async def health(client, clock):
    """Health checks of webhooks that are served with a certificate for a minute."""
    admission = Admission(client, (), Metrics(), clock, observes=False)
    admission.bind(HERE)
    async with admission.running(Webhooks(HERE, rotation=BRIEF)):
        health = admission.add_checks(Health())
        while health.ready["webhooks"]() or health.warnings["webhooks"]():
            await clock.advance(0.25)
        yield health


async def test_while_certificates_are_renewed_no_fault_is_reported(health, clock):
    await clock.advance(300)
    assert (health.ready["webhooks"](), health.warnings["webhooks"]()) == ("", "")


async def test_a_certificate_that_cannot_be_renewed_is_reported_and_fails_readiness_when_it_expires(
    health, client, clock
):
    client.transport.fail = cut
    await clock.advance(50)
    told = health.warnings["webhooks"]()
    assert told.startswith("not maintained, certificate valid until 2026-01-01 00:01:0")
    assert told.endswith(": cut")
    assert health.ready["webhooks"]() == ""
    await clock.advance(15)
    assert health.ready["webhooks"]().startswith("the certificate expired at 2026-01-01 00:01:0")
    client.transport.fail = lambda _method, _path: None
    await clock.advance(5)
    assert (health.ready["webhooks"](), health.warnings["webhooks"]()) == ("", "")
