"""The informers of a process, on the embedded server under virtual time: shared, started and stopped by need."""

import asyncio
from dataclasses import replace
from random import Random

import pytest

from nodeyard.client.api import Client
from nodeyard.client.resources import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS, untyped
from nodeyard.client.rest_mapper import DISCOVERY_RETRY_SECONDS, DISCOVERY_SECONDS
from nodeyard.kube.objects import Node, PartialObject, Pod
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import settle
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.capability import Watch
from nodeyard.watch import InformerFactory
from nodeyard.watch.informers import CONFIRM_INTERVAL_SECONDS, CONFIRM_SECONDS, expose_metrics
from nodeyard.watch.reflector import STALLED_SECONDS
from nodeyard.watch.subscription import EventHandlers

from .builders import NO_KINDS, Hold, Script, bookmark, refusal
from .harness import COUNT, NODE_WATCH, WIDGETS, names_of


async def test_a_view_shows_objects_indexes_and_aggregates_and_keys_are_marked(harness):
    await harness.make_node("a", zone="x")
    view = harness.register(NODE_WATCH, aggregates=(COUNT,))
    assert not view.is_synced("Node")
    await harness.start()
    await harness.make_node("b", zone="x")
    await settle()
    assert view.is_synced("Node")
    assert [node.metadata.name for node in view.all("Node")] == ["a", "b"]
    assert [node.metadata.name for node in view.indexed("Node", "zone", "x")] == ["a", "b"]
    assert (view.aggregate("nodes by zone", "x"), view.aggregate("nodes by zone", "y")) == (2, 0)
    assert view.get("Node", "a").metadata.labels["zone"] == "x"
    assert view.malformed("Node") == {}
    assert (harness.marked, harness.synced) == (["node/a", "node/b"], ["Node"])


async def test_two_subscriptions_of_one_kind_share_a_watch_and_keep_their_own_names(harness):
    one = harness.register(NODE_WATCH)
    other = harness.register(Watch(NODES.decoded_as(Node), keys=names_of, indexes={"zone": lambda _obj: ["all"]}))
    await harness.start()
    await harness.make_node("a", zone="x")
    await settle()
    assert len(harness.informers.reports()) == 1
    assert [len(view.indexed("Node", "zone", "x")) for view in (one, other)] == [1, 0]
    assert harness.marked == ["node/a", "node/a"]


async def test_a_watch_runs_only_while_it_is_needed(harness):
    needed = Watch(
        PODS.decoded_as(Pod),
        keys=lambda _old, _new: [],
        needed=lambda view: any("pods" in node.metadata.labels for node in view.all("Node")),
    )
    view = harness.register(NODE_WATCH, needed)
    await harness.start()
    assert harness.running == {"nodes"}
    await harness.make_node("a", pods="please")
    await harness.clock.advance(0.2)
    assert harness.running == {"nodes", "pods"}
    assert view.is_synced("Pod")
    await harness.client.delete(NODES, "a")
    await harness.clock.advance(0.2)
    assert harness.running == {"nodes"}
    assert not view.is_synced("Pod")


async def test_an_optional_kind_is_watched_when_it_appears_and_forgotten_when_it_goes(harness):
    view = harness.register(Watch(WIDGETS, keys=lambda old, new: ["widget"], optional=True))
    await harness.start()
    assert harness.running == set()
    assert view.is_synced("Widget")
    assert harness.informers.is_synced
    await harness.define_widgets()
    await harness.client.create(WIDGETS, {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}})
    await harness.clock.advance(DISCOVERY_SECONDS + 1)
    assert [obj["metadata"]["name"] for obj in view.all("Widget.example.dev")] == ["w"]
    await harness.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
    await harness.clock.advance(DISCOVERY_SECONDS + 1)
    assert (harness.running, view.all("Widget"), view.is_synced("Widget")) == (set(), (), True)
    assert harness.marked == ["widget", "widget"]


async def test_a_kind_that_is_not_optional_keeps_the_process_from_being_synced(harness):
    harness.register(Watch(WIDGETS, keys=lambda old, new: []))
    await harness.start()
    assert not harness.informers.is_synced
    [report] = harness.informers.reports()
    assert report.error.startswith("NotFound")
    await harness.define_widgets()
    await harness.clock.advance(60)
    await asyncio.wait_for(harness.informers.wait_for_sync(), 1)
    assert harness.informers.is_synced


async def test_an_older_version_is_watched_where_the_server_does_not_have_the_newer_one(harness):
    newer = replace(WIDGETS, version="v2")
    view = harness.register(Watch(newer, keys=lambda old, new: ["widget"], optional=True, fallback_versions=("v1",)))
    await harness.start()
    await harness.define_widgets()
    await harness.client.create(WIDGETS, {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}})
    await harness.clock.advance(DISCOVERY_SECONDS + 1)
    assert [(obj["apiVersion"], obj["metadata"]["name"]) for obj in view.all("Widget")] == [("example.dev/v1", "w")]


async def test_during_a_version_change_the_kind_is_never_shown_as_empty(harness):
    seen = []

    def refresh(*_change):
        seen.append((view.is_synced("Widget"), [obj["apiVersion"] for obj in view.all("Widget")]))
        return seen[-1]

    newer = replace(WIDGETS, version="v2")
    watch = Watch(newer, keys=lambda old, new: ["widget"], optional=True, fallback_versions=("v1",))
    view = harness.informers.register((watch,), (), EventHandlers(on_key=refresh))
    await harness.define_widgets()
    await harness.client.create(WIDGETS, {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": "w"}})
    await harness.start()
    assert refresh() == (True, ["example.dev/v1"])

    await harness.serve_widgets_as("v2")
    await harness.clock.advance(DISCOVERY_SECONDS + 1)
    assert refresh() == (True, ["example.dev/v2"])
    assert (True, []) not in seen


async def test_metadata_only_is_asked_for_and_kept_as_that(harness):
    await harness.client.create(CONFIG_MAPS, {"metadata": {"name": "c", "namespace": "default"}, "data": {"x": "y"}})
    view = harness.register(Watch(CONFIG_MAPS, keys=lambda old, new: [], metadata_only=True))
    await harness.start()
    found = view.get("ConfigMap", "c", "default")
    assert isinstance(found, PartialObject)
    assert found.metadata.uid


async def test_a_selected_watch_has_only_what_is_selected(harness):
    await harness.make_node("a", spare="true")
    await harness.make_node("b")
    view = harness.register(Watch(NODES.decoded_as(Node), keys=names_of, label_selector="spare=true"))
    await harness.start()
    assert [node.metadata.name for node in view.all("Node")] == ["a"]
    assert harness.running == {"nodes[spare=true]"}


async def test_our_write_is_in_the_view_before_the_watch_event(harness):
    await harness.make_node("a")
    view = harness.register(NODE_WATCH)
    await harness.start()
    answer = await harness.client.patch(NODES, "a", {"metadata": {"labels": {"zone": "x"}}})
    harness.informers.record_write(ref("a"), answer)
    assert [node.metadata.name for node in view.indexed("Node", "zone", "x")] == ["a"]
    await settle()
    assert harness.informers.reports()[0].unconfirmed == 0
    status = await harness.client.delete(NODES, "a")
    harness.informers.record_deletion(ref("a"), status)
    assert view.all("Node") == ()


async def test_a_deletion_that_waits_for_finalizers_is_a_write(harness):
    await harness.client.create(NODES, {"metadata": {"name": "a", "finalizers": ["example.dev/hold"]}})
    view = harness.register(NODE_WATCH)
    await harness.start()
    harness.informers.record_deletion(ref("a"), await harness.client.delete(NODES, "a"))
    assert view.get("Node", "a").metadata.deletion_timestamp is not None


async def test_a_write_that_the_watch_never_delivers_is_confirmed_by_a_get(harness):
    made = await harness.make_node("a")
    view = harness.register(NODE_WATCH)
    await harness.start()
    never = {**made, "metadata": {**made["metadata"], "resourceVersion": "999999", "labels": {"zone": "x"}}}
    harness.informers.record_write(ref("a"), never)
    assert view.get("Node", "a").metadata.labels == {"zone": "x"}
    await harness.clock.advance(CONFIRM_SECONDS + CONFIRM_INTERVAL_SECONDS)
    assert view.get("Node", "a").metadata.labels == {}


async def test_an_answer_that_does_not_decode_is_left_to_the_watch(harness):
    await harness.make_node("a")
    view = harness.register(NODE_WATCH)
    await harness.start()
    harness.informers.record_write(ref("a"), {"metadata": {"name": "a", "labels": 5}})
    assert view.get("Node", "a").metadata.labels == {}


async def test_a_mapping_to_keys_that_fails_does_not_end_the_watch(harness):
    view = harness.register(Watch(NODES.decoded_as(Node), keys=lambda old, new: [old.metadata.name]))
    await harness.start()
    await harness.make_node("a")
    await settle()
    assert len(view.all("Node")) == 1
    assert harness.informers.reports()[0].restarts == 0


async def test_kinds_of_one_name_are_distinguished_by_group(harness):
    clash = untyped("example.dev", "v1", "nodes", "Node", namespaced=False)
    view = harness.register(Watch(clash, keys=names_of, optional=True), Watch(WIDGETS, keys=names_of, optional=True))
    assert view.all("Node.example.dev") == view.all("Node") == ()
    both = harness.register(Watch(clash, keys=names_of, optional=True), NODE_WATCH)
    assert both.all("Node.example.dev") == both.all("Node.core") == ()
    with pytest.raises(KeyError, match="more than one group"):
        both.all("Node")


async def test_one_kind_twice_in_one_capability_is_a_mistake_and_said(harness):
    with pytest.raises(ValueError, match="Node.core is watched twice"):
        harness.register(NODE_WATCH, Watch(NODES.decoded_as(Node), keys=names_of, label_selector="spare"))


async def test_undeclared_kinds_are_named(harness):
    view = harness.register(NODE_WATCH)
    with pytest.raises(KeyError, match="Pod is not watched"):
        view.all("Pod")
    with pytest.raises(KeyError, match='Node has no index "colour"'):
        view.indexed("Node", "colour", "red")
    with pytest.raises(KeyError, match='no aggregate "size"'):
        view.aggregate("size", "x")


async def test_the_watches_are_measured(harness):
    harness.register(NODE_WATCH)
    metrics = Metrics()
    expose_metrics(metrics, harness.informers)
    assert 'nodeyard_informer_synced{resource="nodes",view="Node"} 0.0' in (await metrics.render()).decode()
    await harness.start()
    await harness.make_node("a")
    await settle()
    text = (await metrics.render()).decode()
    assert 'nodeyard_informer_objects{resource="nodes",view="Node"} 1.0' in text
    assert 'nodeyard_informer_synced{resource="nodes",view="Node"} 1.0' in text


async def test_a_stalled_watch_is_named(clock):
    watches = InformerFactory(Client(Script(clock, [bookmark(5, is_end=True), Hold()])), clock, Random(1))
    view = watches.register((NODE_WATCH,))
    task = asyncio.create_task(watches.run())
    await clock.advance(STALLED_SECONDS)
    assert watches.broken_watches(view) == []
    await clock.advance(1)
    assert [report.resource for report in watches.broken_watches(view)] == ["nodes"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_while_discovery_fails_the_answer_is_unknown_and_it_is_repeated_soon(clock):
    refused = refusal(503)
    watches = InformerFactory(Client(Script(clock, refused, refused, NO_KINDS, NO_KINDS)), clock, Random(1))
    view = watches.register((Watch(WIDGETS, keys=names_of, optional=True),))
    task = asyncio.create_task(watches.run())
    await clock.advance(1)
    assert (watches.is_synced, view.is_synced("Widget")) == (False, False)
    await clock.advance(DISCOVERY_RETRY_SECONDS)
    assert (watches.is_synced, view.is_synced("Widget")) == (True, True)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_need_that_cannot_be_evaluated_counts_as_needed(harness):
    harness.register(Watch(NODES.decoded_as(Node), keys=names_of, needed=lambda view: view.all("Missing")))
    await harness.start()
    assert harness.running == {"nodes"}


async def test_a_response_is_accepted_only_in_the_watched_type(harness):
    await harness.make_node("a")
    view = harness.register(NODE_WATCH)
    await harness.start()
    patch = {"metadata": {"labels": {"zone": "x"}}}
    typed = await harness.client.patch(NODES.decoded_as(Node), "a", patch)
    harness.informers.record_write(ref("a"), PartialObject(metadata=typed.metadata))
    assert view.get("Node", "a").metadata.labels == {}
    harness.informers.record_write(ref("a"), typed)
    assert view.get("Node", "a") is typed


async def test_a_status_is_not_laid_over(harness):
    view = harness.register(NODE_WATCH)
    await harness.start()
    harness.informers.record_write(ref("a"), {"kind": "Status", "status": "Success", "metadata": {}})
    harness.informers.record_write(ref("a"), None)
    assert view.all("Node") == ()


def ref(name):
    return ObjectRef(api_version="v1", kind="Node", name=name)
