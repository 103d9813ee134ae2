"""Metrics of leaves and leases."""

from types import SimpleNamespace

import pytest
from tests.builders.lease_loop import LeaseLoopHarness
from tests.builders.remote_clusters import RemoteClusters

from nodeyard.capabilities.clustertree.leases.metrics import LeaseMetrics
from nodeyard.process.metrics import Metrics
from nodeyard.sim.embedded import connect


class Scrape:
    def __init__(self, metrics):
        self._registry = metrics.registry

    def __call__(self, name, **labels):
        return self._registry.get_sample_value(f"nodeyard_leaf_{name}", {"cluster": "oak", **labels})


@pytest.fixture
async def remotes(clock):
    remotes = RemoteClusters(clock)
    await remotes.add("oak", "root")
    yield remotes
    await remotes.stop()


async def test_ages_grow_and_renewals_are_counted_until_the_leaf_is_gone(clock, remotes):
    metrics = Metrics()
    scrape = Scrape(metrics)
    loop_harness = LeaseLoopHarness(metrics_recorder=SimpleNamespace(leases=LeaseMetrics(metrics)))
    loop_harness.put("oak", b"oak first", "n1", "n2")
    async with loop_harness.running(connect(remotes.leaves["root"].server), clock, remotes.connect):
        await clock.advance(30.0)
        assert scrape("lease_renewals_total", result="created") == 2
        assert scrape("lease_renewals_total", result="renewed") >= 4
        assert (scrape("contact_age_seconds") < 10.0, scrape("lease_age_seconds") < 10.0) == (True, True)
        remotes.leaves["oak"].disconnect()
        await clock.advance(60.0)
        assert (scrape("contact_age_seconds") > 50.0, scrape("lease_age_seconds") > 50.0) == (True, True)
        loop_harness.known.drop("oak")
        await clock.advance(1.0)
        assert scrape("contact_age_seconds") is None
        assert scrape("lease_renewals_total", result="created") is None


async def test_a_scrape_on_another_thread_shows_them(clock, remotes):
    metrics = Metrics()
    loop_harness = LeaseLoopHarness(metrics_recorder=SimpleNamespace(leases=LeaseMetrics(metrics)))
    loop_harness.put("oak", b"oak first", "n1")
    async with loop_harness.running(connect(remotes.leaves["root"].server), clock, remotes.connect):
        await clock.advance(10.0)
        text = (await metrics.render()).decode()
    assert 'nodeyard_leaf_contact_age_seconds{cluster="oak"}' in text
