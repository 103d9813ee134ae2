"""Loading a bundle into the server: equal objects, and refusal of invalid ones."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.server import Server
from nodeyard.bundle.model import GVR, BundleError, ClusterState, ServedResource
from nodeyard.client.errors import Expired
from nodeyard.kube.json import Object
from nodeyard.process.clock import EPOCH, VirtualClock
from nodeyard.sim.embedded import connect
from nodeyard.sim.nodes import node

from ...builders.bundles import contents, copy_cluster, write_bundle

VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
NODES = GVR("", "v1", "nodes")
PODS = GVR("", "v1", "pods")
VOLUMES = GVR("", "v1", "persistentvolumes")
MACHINES = GVR("cluster.x-k8s.io", "v1beta2", "machinedeployments")
DEFINITIONS = GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
DEFINITIONS_URL = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVED = [
    ServedResource("", "v1", "nodes", "Node", False, "node", ("no",), (), VERBS, ("status",)),
    ServedResource("", "v1", "pods", "Pod", True, "pod", ("po",), (), VERBS, ("status",)),
    ServedResource("", "v1", "persistentvolumes", "PersistentVolume", False, "persistentvolume", ("pv",), (), VERBS),
    ServedResource(
        MACHINES.group, "v1beta2", MACHINES.resource, "MachineDeployment", True, "machinedeployment",
        ("md",), (), VERBS, ("status", "scale"),
    ),
    ServedResource(
        MACHINES.group, "v1beta1", MACHINES.resource, "MachineDeployment", True, verbs=VERBS, subresources=("scale",)
    ),
]  # fmt: skip
WIDGETS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def stored(kind: str, api_version: str, name: str, revision: int, namespace: str = "", **rest: object) -> Object:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(revision), "generation": 7}
    metadata["creationTimestamp"] = "2026-01-02T03:04:05Z"
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def deployment(name: str, revision: int) -> Object:
    content = {"spec": {"replicas": 3, "anything": [1]}, "status": {"replicas": 2}}
    return stored("MachineDeployment", "cluster.x-k8s.io/v1beta2", name, revision, "default", **content)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bundle.tgz"


async def started(cluster: ClusterState, clock: VirtualClock | None = None) -> Server:
    server = Server(clock or VirtualClock(), seed=1)
    server.load(cluster)
    await server.start(())
    return server


async def test_a_loaded_cluster_has_equal_objects(path, tmp_path, clock):
    source = Server(clock, seed=1)
    await source.start(())
    await source.call("POST", DEFINITIONS_URL, WIDGETS)
    await source.idle()
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    await source.call("POST", "/apis/example.com/v1/namespaces/default/widgets", widget)
    merge = "application/merge-patch+json"
    url = "/apis/example.com/v1/namespaces/default/widgets/w/status"
    await source.call("PATCH", url, {"status": {"fine": True}}, content_type=merge)
    await source.call("POST", "/api/v1/nodes", node("n1", EPOCH))
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}
    await source.call("POST", "/api/v1/namespaces/default/pods", pod)
    secret = {"metadata": {"name": "s"}, "data": {"token": "c2VjcmV0"}}
    await source.call("POST", "/api/v1/namespaces/default/secrets", secret)
    about = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "metadata": {"name": "e"}}
    await source.call("POST", "/api/v1/namespaces/default/events", about)
    gathered = await copy_cluster(connect(source), path)

    server = await started(gathered, clock)
    await server.idle()

    again = await copy_cluster(connect(server), tmp_path / "again.tgz")
    assert contents(again) == contents(gathered)
    assert {each.gvr for each in again.resources} == {each.gvr for each in gathered.resources}
    assert again.version == gathered.version
    assert server.store.revision == source.store.revision
    await source.stop()
    await server.stop()


async def test_resource_versions_continue_above_the_highest(path):
    nodes = [{**node("n1", EPOCH), "metadata": {"name": "n1", "uid": "u", "resourceVersion": "123456789012"}}]
    server = await started(write_bundle(path, SERVED, {NODES: nodes}))

    created = await server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n2"}})

    assert int(created["metadata"]["resourceVersion"]) > 123456789012
    assert (await server.call("GET", "/api/v1/nodes/n1"))["metadata"]["resourceVersion"] == "123456789012"
    changed = await server.call("PUT", "/api/v1/nodes/n1", nodes[0])
    assert changed["metadata"]["uid"] == "u"
    await server.stop()


async def test_a_watch_from_before_the_bundle_is_gone(path):
    server = await started(write_bundle(path, SERVED, {NODES: [stored("Node", "v1", "n1", 500)]}))
    client = connect(server)
    nodes = (await client.catalog()).find("nodes").resource
    async with client.watch(nodes, resource_version="400") as events:
        with pytest.raises(Expired, match="too old resource version: 400"):
            await anext(events)
    await server.stop()


async def test_a_kind_without_its_definition_is_served_as_discovery_described_it(path):
    volume = stored("PersistentVolume", "v1", "pv1", 7, spec={"capacity": {"storage": "1Gi"}})
    objects = {MACHINES: [deployment("md1", 9)], VOLUMES: [volume]}
    server = await started(write_bundle(path, SERVED, objects))

    listed = await server.call("GET", "/apis/cluster.x-k8s.io/v1beta2/machinedeployments")
    assert listed["items"] == objects[MACHINES]
    assert await server.call("GET", "/api/v1/persistentvolumes/pv1") == volume
    older = "/apis/cluster.x-k8s.io/v1beta1/namespaces/default/machinedeployments/md1"
    assert (await server.call("GET", older))["apiVersion"] == "cluster.x-k8s.io/v1beta1"
    known = (await connect(server).catalog()).find("md")
    assert known.subresources >= {"status", "scale"}
    merge = "application/merge-patch+json"
    patched = await server.call("PATCH", older, {"spec": {"replicas": 5, "new": {"field": 1}}}, content_type=merge)
    assert patched["spec"] == {"replicas": 5, "anything": [1], "new": {"field": 1}}
    assert patched["metadata"]["generation"] == 8
    assert (await server.call("GET", f"{older}/scale"))["spec"] == {"replicas": 5}
    await server.stop()


async def test_an_established_definition_is_served_before_the_server_has_started(path):
    widget = stored("Widget", "example.com/v1", "w", 8, "default", spec={"size": 2})
    established = {"type": "Established", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}
    definition = {
        **WIDGETS,
        "metadata": {"name": "widgets.example.com", "uid": "u1", "resourceVersion": "3"},
        "status": {"conditions": [established]},
    }
    cluster = write_bundle(path, [], {DEFINITIONS: [definition], GVR("example.com", "v1", "widgets"): [widget]})
    server = Server(VirtualClock(), seed=1)

    server.load(cluster)

    assert await server.call("GET", "/apis/example.com/v1/namespaces/default/widgets/w") == widget
    await server.start(())
    url = "/apis/example.com/v1/namespaces/default/widgets"
    with pytest.raises(ApiError, match=re.escape("spec.size in body should be greater than or equal to 1")):
        await server.call("PUT", f"{url}/w", {**widget, "spec": {"size": 0}})
    await server.stop()


async def test_the_secrets_of_a_bundle_are_hashes(path):
    secrets = GVR("", "v1", "secrets")
    served = [ServedResource("", "v1", "secrets", "Secret", True, verbs=VERBS)]
    secret = stored("Secret", "v1", "s", 5, "default", data={"token": "sha256:9f86d081"})
    server = await started(write_bundle(path, served, {secrets: [secret]}))

    assert (await server.call("GET", "/api/v1/namespaces/default/secrets/s"))["data"] == {"token": "sha256:9f86d081"}
    await server.stop()


async def test_events_last_an_hour_from_the_load_and_are_there_in_both_groups(path, clock):
    events, own = GVR("", "v1", "events"), GVR("events.k8s.io", "v1", "events")
    served = [ServedResource(each.group, "v1", "events", "Event", True, verbs=VERBS) for each in (events, own)]
    regarding = {"kind": "Node", "name": "n"}
    event = stored("Event", "v1", "e", 5, "default", involvedObject=regarding, message="m")
    other = stored("Event", "events.k8s.io/v1", "e", 5, "default", regarding=regarding, note="m")
    server = await started(write_bundle(path, served, {events: [event], own: [other]}), clock)

    assert len((await server.call("GET", "/api/v1/events"))["items"]) == 1
    assert (await server.call("GET", "/apis/events.k8s.io/v1/events"))["items"][0]["note"] == "m"
    await clock.advance(timedelta(hours=1).total_seconds() + 1)
    assert (await server.call("GET", "/api/v1/events"))["items"] == []
    await server.stop()


async def test_a_namespace_that_the_bundle_lacks_is_there(path):
    pod = stored("Pod", "v1", "p", 4, "web", spec={"containers": [{"name": "c", "image": "i"}]})
    server = await started(write_bundle(path, SERVED, {PODS: [pod]}))

    assert (await server.call("GET", "/api/v1/namespaces/web"))["status"] == {"phase": "Active"}
    await server.stop()


async def test_what_has_no_uid_and_no_resource_version_gets_them(path):
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    server = await started(write_bundle(path, SERVED, {NODES: [stored("Node", "v1", "m", 40), bare]}))

    metadata = (await server.call("GET", "/api/v1/nodes/n"))["metadata"]

    assert int(metadata["resourceVersion"]) == 41
    assert metadata["uid"]
    await server.call("DELETE", "/api/v1/nodes/n")
    await server.stop()


async def test_a_running_server_takes_no_bundle(path):
    cluster = write_bundle(path, SERVED, {NODES: [stored("Node", "v1", "n", 4)]})
    server = Server(VirtualClock())
    await server.start(())

    with pytest.raises(BundleError, match="a server without objects only"):
        server.load(cluster)
    await server.stop()


N = stored("Node", "v1", "n", 4)


def changed(**metadata: object) -> dict[GVR, list[Object]]:
    return {NODES: [{**N, "metadata": {**N["metadata"], **metadata}}]}


def with_definition(**spec: object) -> dict[GVR, list[Object]]:
    return {DEFINITIONS: [{**WIDGETS, "spec": {**WIDGETS["spec"], **spec}}]}


VERSION: Object = WIDGETS["spec"]["versions"][0]


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        (changed(resourceVersion="1e9"), "nodes/n: metadata.resourceVersion is '1e9', not a number below 10^18"),
        (changed(resourceVersion="9" * 19), "nodes/n: metadata.resourceVersion is "),
        (changed(resourceVersion=4), "nodes/n: "),
        (changed(uid=5), "nodes/n: "),
        (changed(labels={"a": 1}), "nodes/n: "),
        (changed(name="a/b"), "nodes/a/b: has a name that no path can have"),
        (changed(name="\u202e\n"), r"nodes/\u202e\n: "),
        (changed(name=""), "nodes/: has no name"),
        (changed(namespace="x"), "nodes/x/n: has a namespace"),
        (changed(managedFields={"a": 1}), "nodes/n: "),
        (changed(creationTimestamp="yesterday"), "nodes/n: "),
        ({PODS: [stored("Pod", "v1", "p", 4)]}, "pods/p: has no namespace"),
        ({NODES: [N, N]}, "nodes/n: is there twice"),
        ({NODES: [{**N, "kind": "Pod"}]}, "nodes/n: kind is 'Pod', not Node"),
        ({NODES: [{**N, "spec": 5}]}, "nodes/n: "),
        ({NODES: [{**N, "status": {"capacity": {"cpu": "many"}}}]}, "nodes/n: "),
        ({GVR("a.b", "v1", "cs"): [stored("C", "a.b/v1", "c", 4)]}, "cs.v1.a.b: has objects, but the cluster does not"),
        ({VOLUMES: [stored("PersistentVolume", "v1", "v", 4, "x")]}, "persistentvolumes/x/v: has a namespace"),
        (
            {MACHINES: [deployment("a", 4)], MACHINES._replace(version="v1beta1"): []},
            "the objects of a resource are there in two versions",
        ),
        (with_definition(versions=[]), "CustomResourceDefinition 'widgets.example.com': cannot be served: "),
        (with_definition(versions=[{**VERSION, "schema": {"openAPIV3Schema": {"type": 5}}}]), "CustomResourceDef"),
        (with_definition(versions=[{**VERSION, "additionalPrinterColumns": [{}]}]), "CustomResourceDefinition 'w"),
        (with_definition(group="", names={"kind": "Node", "plural": "nodes"}), "CustomResourceDefinition 'w"),
        ({DEFINITIONS: [{**WIDGETS, "spec": None}]}, "CustomResourceDefinition 'widgets.example.com': "),
        ({DEFINITIONS: [{**WIDGETS, "status": 5}]}, "CustomResourceDefinition 'widgets.example.com': "),
    ],
)  # fmt: skip
def test_a_hostile_bundle_is_refused_in_one_line_and_leaves_nothing(path, objects, why):
    cluster = write_bundle(path, SERVED, objects)
    server = Server(VirtualClock())
    kinds = [resource.key for resource in server.registry]

    with pytest.raises(BundleError) as refused:
        server.load(cluster)

    assert str(refused.value).startswith(why)
    assert "\n" not in str(refused.value)
    assert server.store.revision == 1
    assert server.store.count(GroupResource("", "nodes")) == 0
    assert [resource.key for resource in server.registry] == kinds
