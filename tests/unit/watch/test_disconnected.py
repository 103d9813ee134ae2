"""Informers of a cluster that is disconnected, reconnected or replaced, and facts about its server."""

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES
from nodeyard.client.rest_mapper import DISCOVERY_SECONDS
from nodeyard.process.clock import settle
from nodeyard.watch.subscription import EventHandlers

from .harness import COUNT, NODE_WATCH, Harness


class Counting:
    """Transport that records the paths of requests and the start versions of watches."""

    def __init__(self, inner):
        self._inner = inner
        self.close = inner.close
        self.asked, self.begun = [], []

    async def send(self, request):
        self.asked.append(request.path)
        return await self._inner.send(request)

    def stream(self, request):
        self.begun.append(request.query.get("resourceVersion", ""))
        return self._inner.stream(request)


@pytest.fixture
async def harness(clock):
    server = Server(clock, seed=1)
    await server.start(())
    harness = Harness(clock, server)
    harness.tap = harness.client.transport = Counting(harness.client.transport)
    yield harness
    await harness.stop()
    await server.stop()


async def test_paused_watches_keep_their_caches_and_resume(harness, clock):
    await harness.make_node("a", zone="x")
    view = harness.register(NODE_WATCH, aggregates=(COUNT,))
    await harness.start()
    harness.informers.pause()
    await clock.advance(1)
    assert harness.running == set()
    assert (view.is_synced("Node"), view.aggregate("nodes by zone", "x")) == (True, 1)
    await harness.make_node("b", zone="x")
    await clock.advance(1)
    assert view.aggregate("nodes by zone", "x") == 1
    harness.informers.resume()
    await clock.advance(1)
    assert (view.aggregate("nodes by zone", "x"), harness.synced) == (2, ["Node"])
    assert harness.tap.begun[0] == ""
    assert harness.tap.begun[1] != "", "the second watch begins where the first ended"


async def test_objects_deleted_while_disconnected_are_removed(harness, clock):
    await harness.make_node("a", zone="x")
    view = harness.register(NODE_WATCH)
    await harness.start()
    harness.informers.pause()
    await clock.advance(1)
    await harness.client.delete(NODES, "a")
    harness.informers.resume()
    await clock.advance(1)
    assert view.all("Node") == ()


async def test_the_cache_of_another_cluster_is_dropped(harness, clock):
    await harness.make_node("a", zone="x")
    view = harness.register(NODE_WATCH, aggregates=(COUNT,))
    await harness.start()
    harness.informers.pause()
    await harness.informers.forget()
    assert (view.all("Node"), view.is_synced("Node"), view.aggregate("nodes by zone", "x")) == ((), False, 0)
    harness.informers.resume()
    await clock.advance(1)
    assert [node.metadata.name for node in view.all("Node")] == ["a"]


async def test_facts_about_the_server_are_requested_only_on_demand(harness, clock):
    harness.register(NODE_WATCH)
    await harness.start()
    await clock.advance(120)
    assert harness.tap.asked == []


async def test_which_cluster_it_is_is_asked_once(harness, clock):
    view = harness.register(NODE_WATCH)
    await harness.start()
    assert view.uid == ""
    await clock.advance(1)
    assert view.uid == (await harness.client.get(NAMESPACES, "kube-system"))["metadata"]["uid"]
    harness.tap.asked.clear()
    await clock.advance(120)
    assert harness.tap.asked == []


async def test_a_changed_kind_is_reported_to_users_of_its_versions(harness, clock):
    changes = []
    view = harness.informers.register(
        (NODE_WATCH,),
        handlers=EventHandlers(on_unmapped=lambda: changes.append(view.versions("example.dev", "Widget"))),
    )
    await harness.start()
    assert (view.versions("example.dev", "Widget"), view.is_answered) == ((), False)
    await clock.advance(1)
    assert (changes, view.is_answered) == ([()], True)
    await harness.define_widgets()
    await clock.advance(DISCOVERY_SECONDS + 1)
    await harness.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
    await clock.advance(DISCOVERY_SECONDS + 1)
    await settle()
    assert changes == [(), ("v1",), ()]
