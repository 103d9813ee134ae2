"""Kinds by apiVersion and name: those watched at once, others by discovery."""

import asyncio

import pytest
from tests.builders.labels import API_VERSION, definition

from nodeyard.apiserver.server import Server
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, NODES
from nodeyard.kube.objects import Node
from nodeyard.runtime.rest_mapper import RESTMapper
from nodeyard.sim.embedded import connect


@pytest.fixture
async def client(clock):
    server = Server(clock)
    await server.start(())
    yield connect(server)
    await server.stop()


@pytest.fixture
async def served(client, clock):
    served = RESTMapper(client, clock)
    running = asyncio.create_task(served.run())
    yield served
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_watched_kind_is_answered_in_the_type_of_its_cache(served):
    served.watch([NODES.decoded_as(Node)])
    assert served.find("v1", "Node").view is Node


async def test_other_kinds_come_from_discovery(served, clock):
    await clock.advance(1)
    assert served.find("apps/v1", "DaemonSet").plural == "daemonsets"


async def test_a_kind_that_appears_later_is_found_after_it_was_missed(served, client, clock):
    await clock.advance(1)
    assert served.find(API_VERSION, "LabelRule") is None
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition())
    await clock.advance(30)
    await clock.advance(30)
    assert served.find(API_VERSION, "LabelRule").plural == "labelrules"
