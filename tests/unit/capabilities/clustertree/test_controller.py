"""Events that enqueue a Cluster, on the operator's own cache; all other events enqueue nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from random import Random
from types import SimpleNamespace

import msgspec
import pytest
from tests.builders.tree_state import NOW, lease

from nodeyard.apiserver.server import Server
from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE, clusters
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.watched import CLUSTERS, LeafPod
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS, SECRETS
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import VirtualClock, settle
from nodeyard.sim.embedded import connect
from nodeyard.watch.informers import InformerFactory
from nodeyard.watch.subscription import EventHandlers

KUBECONFIG = """
{"clusters": [{"name": "c", "cluster": {"server": "https://leaf.example:6443"}}],
 "users": [{"name": "u", "user": {"token": "t0ken"}}],
 "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"}
"""
MIRROR = {"labels": {MIRRORED_NODE: "true"}, "annotations": {MIRRORED_CLUSTER: "east"}}


class Root:
    """A server, the capability's view of it, and the enqueued keys."""

    def __init__(self):
        self.clock = VirtualClock()
        self.server = Server(self.clock)
        self.client = connect(self.server)
        self.watches = InformerFactory(self.client, self.clock, Random(1))
        self.due = []
        watches = [self._told_by(watch) for watch in CLUSTERTREE.watches]
        declared = lambda view: [self._told_by(watch) for watch in CLUSTERTREE.dynamic.watches(view)]  # noqa: E731
        handlers = EventHandlers(on_key=lambda key, *_: self.due.append(key))
        self.view = self.watches.register(watches, CLUSTERTREE.aggregates, handlers, declared=declared)

    def _told_by(self, watch):
        """Run the watches as the controller does."""
        if watch.map_with_view is None:
            return watch
        return replace(watch, keys=lambda old, new: watch.map_with_view(self.view, old, new))

    async def after(self, change):
        """Return the keys enqueued by a change, given as a coroutine."""
        await self.told()
        self.due.clear()
        await change
        await self.told()
        return self.due

    async def told(self):
        await self.clock.advance(2)
        await settle()

    async def cluster(self, name, *models, **spec):
        body = {"clusterTreeOptions": {"leafModels": list(models)}, **spec}
        await self.client.create(CLUSTERS.decoded_as(dict), _named(name, spec=body, kind="Cluster"))

    async def node(self, name, **metadata):
        await self.client.create(NODES, {"metadata": {"name": name, **metadata}})


def _named(name, kind, **more):
    return {"apiVersion": names.API_VERSION, "kind": kind, "metadata": {"name": name}, **more}


@pytest.fixture
async def root():
    root = Root()
    await root.server.start(())
    definition = CLUSTERTREE.definitions()[0]
    await root.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    running = asyncio.create_task(root.watches.run())
    await root.told()
    yield root
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await root.server.stop()


async def test_a_new_cluster_is_enqueued_and_a_status_change_is_not(root):
    assert set(await root.after(root.cluster("east"))) == {"east"}
    patch = {"status": {"nodes": 3}}
    resource = CLUSTERS.decoded_as(dict)
    assert await root.after(root.client.patch(resource, "east", patch, subresource="status")) == []
    switched = {"spec": {"clusterTreeOptions": {"enable": False}}}
    assert await root.after(root.client.patch(resource, "east", switched)) == ["east"]


async def test_a_cluster_that_mirrors_the_same_leaf_enqueues_the_others_when_it_changes_or_is_deleted(root):
    leads = {"east": "a-leaf", "west": "a-leaf", "north": "b-leaf"}
    root.view.elsewhere = lambda name: SimpleNamespace(uid=leads[name])
    resource = CLUSTERS.decoded_as(dict)
    for name in leads:
        assert set(await root.after(root.cluster(name))) == {name}
    noted = {"metadata": {"annotations": {names.LEAF: "a-leaf 2026-01-01T00:00:00.000Z"}}}
    assert set(await root.after(root.client.patch(resource, "east", noted))) == {"east", "west"}
    smaller = {"spec": {"clusterTreeOptions": {"leafModels": [{"nodeSelector": {"nodeName": "n1"}}]}}}
    assert set(await root.after(root.client.patch(resource, "east", smaller))) == {"east", "west"}
    assert [each.name for each in root.view.indexed("Cluster", names.BY_LEAF, "a-leaf")] == ["east"]
    assert set(await root.after(root.client.delete(resource, "east"))) == {"east", "west"}


async def test_a_mirrored_node_enqueues_its_cluster_and_a_heartbeat_nothing(root):
    await root.cluster("east")
    assert await root.after(root.node("kosmos-east", **MIRROR)) == ["east"]
    beat = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    assert await root.after(status(root, "kosmos-east", beat)) == ["east"]
    again = {"conditions": [{**beat["conditions"][0], "lastHeartbeatTime": "2026-01-01T00:05:00Z"}]}
    assert await root.after(status(root, "kosmos-east", again)) == []
    assert await root.after(root.client.delete(NODES, "kosmos-east")) == ["east"]


def status(root, node, body):
    return root.client.patch(NODES, node, {"status": body}, subresource="status")


async def test_a_foreign_node_enqueues_clusters_that_want_its_name_when_it_is_created_or_deleted(root):
    await root.cluster("east", {"nodeSelector": {"nodeName": "n1"}})
    await root.cluster("west", {"nodeSelector": {"nodeName": "n1"}})
    await root.cluster("north")
    assert set(await root.after(root.node("n1"))) == {"east", "west"}
    assert await root.after(root.client.patch(NODES, "n1", {"metadata": {"labels": {"a": "b"}}})) == []
    assert await root.after(root.node("somebody")) == []
    assert set(await root.after(root.client.delete(NODES, "n1"))) == {"east", "west"}


async def test_a_secret_enqueues_the_clusters_that_name_it(root):
    await root.cluster("east", kubeconfigSecretRef={"name": "way", "namespace": "default"})
    await root.cluster("west")
    secret = {
        "metadata": {"name": "way", "namespace": "default", "labels": {names.LEAF_KUBECONFIG: "true"}},
        "stringData": {"kubeconfig": KUBECONFIG},
    }
    assert await root.after(root.client.create(SECRETS, secret)) == ["east"]
    assert [(each.name, each.kubeconfig.decode()) for each in clusters(root.view)] == [("east", KUBECONFIG)]
    touched = {"metadata": {"annotations": {"a": "b"}}}
    assert await root.after(root.client.patch(SECRETS, "way", touched, "default")) == []
    hidden = {"metadata": {"labels": {names.LEAF_KUBECONFIG: None}}}
    assert await root.after(root.client.patch(SECRETS, "way", hidden, "default")) == ["east"]
    assert list(clusters(root.view)) == []


async def test_only_pods_that_wait_on_a_mirrored_node_matter(root):
    await root.cluster("east")
    await root.node("kosmos-east", **MIRROR)
    await root.node("real")
    assert await root.after(root.client.create(PODS, pod("here", "kosmos-east"))) == ["east"]
    assert await root.after(root.client.create(PODS, pod("there", "real"))) == []
    started = {"status": {"startTime": "2026-01-01T00:00:00Z"}}
    assert await root.after(root.client.patch(PODS, "here", started, "default", subresource="status")) == ["east"]


def pod(name, node):
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "none"}]}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_an_object_maps_to_the_key_that_explains_it(root):
    await root.cluster("east", {"nodeSelector": {"nodeName": "n1"}})
    await root.node("kosmos-east", **MIRROR)
    await root.client.create(PODS, pod("p", "kosmos-east"))
    await root.told()

    def keys(kind, name, api_version="v1", namespace=""):
        ref = ObjectRef(api_version=api_version, kind=kind, name=name, namespace=namespace)
        return list(CLUSTERTREE.explain.keys_of(root.view, ref))

    assert keys("Cluster", "east", names.API_VERSION) == ["east"]
    assert keys("Cluster", "east", "cluster.x-k8s.io/v1beta2") == []
    assert keys("Node", "kosmos-east") == keys("Node", "n1") == keys("Pod", "p", namespace="default") == ["east"]
    assert keys("Node", "other") == []


# in a leaf

(_leaf_nodes, _leaf_pods, _leaf_leases) = CLUSTERTREE.remote.watches


def test_a_leaf_node_enqueues_the_cluster_only_for_mirrored_fields():
    node = TreeNode()
    meta = node.metadata

    def changed(**metadata):
        return msgspec.structs.replace(node, metadata=msgspec.structs.replace(meta, **metadata))

    assert _leaf_nodes.map_remote("east", None, node) == ("east",)
    assert _leaf_nodes.map_remote("east", node, None) == ("east",)
    assert _leaf_nodes.map_remote("east", node, changed(resource_version="2", annotations={"a": "b"})) == ()
    assert _leaf_nodes.map_remote("east", node, changed(labels={"a": "b"})) == ("east",)
    mirror = changed(labels={MIRRORED_NODE: "true"})
    assert _leaf_nodes.map_remote("east", None, mirror) == ()
    assert _leaf_nodes.map_remote("east", mirror, node) == ("east",)


def test_a_leaf_pod_enqueues_the_cluster_only_for_its_requests():
    def pod(node="n1", phase="Running", version="1", **labels):
        wire = {
            "metadata": {"name": "p", "namespace": "default", "resourceVersion": version, "labels": labels},
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
            "status": {"phase": phase},
        }
        return msgspec.convert(wire, LeafPod)

    keys = _leaf_pods.map_remote
    assert keys("east", None, pod()) == keys("east", pod(), None) == ("east",)
    assert keys("east", None, pod(node="")) == ()
    assert keys("east", pod(), pod(version="2", app="web")) == ()
    assert keys("east", pod(), pod(phase="Succeeded")) == ("east",)
    assert keys("east", pod(phase="Succeeded"), None) == ()
    assert keys("east", pod(phase="Pending"), pod()) == ("east",)


def test_only_a_resumed_leaf_lease_enqueues_the_cluster():
    first = lease(NOW)
    keys = _leaf_leases.map_remote

    assert keys("east", None, first) == keys("east", first, None) == ()
    assert keys("east", first, lease(NOW + timedelta(seconds=49))) == ()
    assert keys("east", first, lease(NOW + timedelta(seconds=50))) == ("east",)
    assert keys("east", lease(None), first) == keys("east", first, lease(None)) == ()


def test_rights_are_those_of_what_is_done_and_leases_are_written_in_one_namespace_alone():
    leases = [rule for rule in CLUSTERTREE.rbac if rule.resources == ("leases",)]

    assert [rule.namespace for rule in leases] == ["kube-node-lease"]
    assert not any("*" in (*rule.resources, *rule.verbs) for rule in CLUSTERTREE.rbac)
    assert replace(leases[0], namespace="").verbs == ("get", "create", "patch", "delete")
