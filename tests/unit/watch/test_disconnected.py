"""Watches on a cluster that is disconnected, reconnected or replaced by another, and facts about its server."""

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES
from nodeyard.client.rest_mapper import DISCOVERY_SECONDS
from nodeyard.process.clock import settle
from nodeyard.watch.subscription import EventHandlers

from .stages import COUNT, NODE_WATCH, Stage


class Counting:
    """A transport that notes which paths are asked for and which versions watches begin at."""

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
async def stage(clock):
    server = Server(clock, seed=1)
    await server.start(())
    stage = Stage(clock, server)
    stage.tap = stage.client.transport = Counting(stage.client.transport)
    yield stage
    await stage.stop()
    await server.stop()


async def test_paused_watches_keep_their_caches_and_resume(stage, clock):
    await stage.make_node("a", zone="x")
    view = stage.register(NODE_WATCH, aggregates=(COUNT,))
    await stage.start()
    stage.informers.pause()
    await clock.advance(1)
    assert stage.running == set()
    assert (view.is_synced("Node"), view.aggregate("nodes by zone", "x")) == (True, 1)
    await stage.make_node("b", zone="x")
    await clock.advance(1)
    assert view.aggregate("nodes by zone", "x") == 1
    stage.informers.resume()
    await clock.advance(1)
    assert (view.aggregate("nodes by zone", "x"), stage.synced) == (2, ["Node"])
    assert stage.tap.begun[0] == ""
    assert stage.tap.begun[1] != "", "the second watch begins where the first ended"


async def test_objects_deleted_while_disconnected_are_removed(stage, clock):
    await stage.make_node("a", zone="x")
    view = stage.register(NODE_WATCH)
    await stage.start()
    stage.informers.pause()
    await clock.advance(1)
    await stage.client.delete(NODES, "a")
    stage.informers.resume()
    await clock.advance(1)
    assert view.all("Node") == ()


async def test_the_cache_of_another_cluster_is_dropped(stage, clock):
    await stage.make_node("a", zone="x")
    view = stage.register(NODE_WATCH, aggregates=(COUNT,))
    await stage.start()
    stage.informers.pause()
    await stage.informers.forget()
    assert (view.all("Node"), view.is_synced("Node"), view.aggregate("nodes by zone", "x")) == ((), False, 0)
    stage.informers.resume()
    await clock.advance(1)
    assert [node.metadata.name for node in view.all("Node")] == ["a"]


async def test_facts_about_the_server_are_requested_only_on_demand(stage, clock):
    stage.register(NODE_WATCH)
    await stage.start()
    await clock.advance(120)
    assert stage.tap.asked == []


async def test_which_cluster_it_is_is_asked_once(stage, clock):
    view = stage.register(NODE_WATCH)
    await stage.start()
    assert view.uid == ""
    await clock.advance(1)
    assert view.uid == (await stage.client.get(NAMESPACES, "kube-system"))["metadata"]["uid"]
    stage.tap.asked.clear()
    await clock.advance(120)
    assert stage.tap.asked == []


async def test_a_changed_kind_is_reported_to_users_of_its_versions(stage, clock):
    changes = []
    view = stage.informers.register(
        (NODE_WATCH,),
        handlers=EventHandlers(on_unmapped=lambda: changes.append(view.versions("example.dev", "Widget"))),
    )
    await stage.start()
    assert (view.versions("example.dev", "Widget"), view.is_answered) == ((), False)
    await clock.advance(1)
    assert (changes, view.is_answered) == ([()], True)
    await stage.define_widgets()
    await clock.advance(DISCOVERY_SECONDS + 1)
    await stage.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
    await clock.advance(DISCOVERY_SECONDS + 1)
    await settle()
    assert changes == [(), ("v1",), ()]
