"""RESTMapper: registered kinds at once, others by cached discovery, and when discovery is repeated."""

import pytest
from tests.builders.labels import API_VERSION, definition

from nodeyard.apiserver.server import Server
from nodeyard.client.discovery import Catalog
from nodeyard.client.errors import ClientError
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, NODES
from nodeyard.client.rest_mapper import (
    DISCOVERY_RETRY_SECONDS,
    DISCOVERY_SECONDS,
    FOLLOW_UP_SECONDS,
    MISS_SECONDS,
    RESTMapper,
)
from nodeyard.kube.objects import Node
from nodeyard.sim.embedded import connect


@pytest.fixture
async def client(clock):
    server = Server(clock)
    await server.start(())
    yield connect(server)
    await server.stop()


@pytest.fixture
def stale():
    return []


@pytest.fixture
def mapper(client, clock, stale):
    return RESTMapper(client, clock, lambda: stale.append(clock.monotonic()))


def test_a_registered_kind_has_the_type_of_its_cache(mapper):
    mapper.register([NODES.decoded_as(Node)])
    assert mapper.find("v1", "Node").view is Node


async def test_other_kinds_come_from_discovery(mapper):
    mapper.follow()
    assert await mapper.refresh()
    assert mapper.find("apps/v1", "DaemonSet").plural == "daemonsets"
    assert mapper.find_any_version("apps", "DaemonSet").version == "v1"
    assert mapper.catalog.versions("apps", "DaemonSet") == ("v1",)


async def test_nothing_is_discovered_before_somebody_follows_or_misses_a_kind(mapper, stale):
    assert not await mapper.refresh()
    assert mapper.find("apps/v1", "DaemonSet") is None
    assert len(stale) == 1
    assert await mapper.refresh()
    assert mapper.due_in == float("inf")


async def test_while_followed_discovery_is_repeated_when_it_is_too_old(mapper, clock, stale):
    mapper.follow()
    mapper.follow()
    assert (len(stale), mapper.due_in) == (1, 0)
    assert await mapper.refresh()
    assert mapper.due_in == DISCOVERY_SECONDS
    assert not await mapper.refresh()
    await clock.advance(DISCOVERY_SECONDS)
    assert await mapper.refresh()


async def test_a_miss_makes_discovery_due_soon_and_not_at_once(mapper, client, clock, stale):
    mapper.find(API_VERSION, "LabelRule")
    await mapper.refresh()
    stale.clear()
    assert mapper.find(API_VERSION, "LabelRule") is None
    assert mapper.find(API_VERSION, "LabelRule") is None
    assert (len(stale), mapper.due_in) == (1, MISS_SECONDS)
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
    await clock.advance(30)
    mapper.find(API_VERSION, "LabelRule")
    await mapper.refresh()
    stale.clear()
    assert mapper.find(API_VERSION, "LabelRule").plural == "labelrules"


async def test_after_invalidate_discovery_runs_at_once_and_a_few_times_soon_after(mapper, clock, stale):
    mapper.follow()
    await mapper.refresh()
    stale.clear()
    mapper.invalidate()
    assert len(stale) == 1
    for wait in (*FOLLOW_UP_SECONDS, DISCOVERY_SECONDS):
        assert await mapper.refresh()
        assert mapper.due_in == wait
        await clock.advance(wait)


async def test_the_catalog_stays_while_discovery_fails(mapper, client, clock, monkeypatch):
    mapper.follow()
    await mapper.refresh()
    mapper.invalidate()
    monkeypatch.setattr(client, "catalog", _unavailable)
    assert not await mapper.refresh()
    assert mapper.due_in == DISCOVERY_RETRY_SECONDS
    assert mapper.find("apps/v1", "DaemonSet") is not None


async def test_what_is_invalidated_during_discovery_is_discovered_again(mapper, client, monkeypatch):
    async def catalog():
        mapper.invalidate()
        return Catalog(())

    monkeypatch.setattr(client, "catalog", catalog)
    mapper.follow()
    assert await mapper.refresh()
    assert mapper.due_in == 0


async def test_another_server_has_another_catalog(mapper):
    mapper.follow()
    await mapper.refresh()
    mapper.forget()
    assert mapper.catalog is None
    assert mapper.find("apps/v1", "DaemonSet") is None


async def _unavailable():
    raise ClientError("unavailable")
