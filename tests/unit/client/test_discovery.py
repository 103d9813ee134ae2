"""A word finds its resource as it does in kubectl."""

import msgspec
import pytest

from nodeyard.client.discovery import MOST_VERSIONS, Catalog, Known, UnknownResource, discover
from nodeyard.client.errors import Forbidden, TransportError
from nodeyard.client.resources import untyped
from nodeyard.client.transport import Response


def known(group, version, plural, kind, short=()):
    return Known(untyped(group, version, plural, kind), kind.lower(), tuple(short))


CATALOG = Catalog(
    [
        known("", "v1", "nodes", "Node", ["no"]),
        known("", "v1", "events", "Event", ["ev"]),
        known("events.k8s.io", "v1", "events", "Event", ["ev"]),
        known("apps", "v1", "deployments", "Deployment", ["deploy"]),
        known("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster", ["cl"]),
        known("cluster.x-k8s.io", "v1beta1", "clusters", "Cluster", ["cl"]),
        known("kosmos.io", "v1alpha1", "clusters", "Cluster"),
    ]
)


@pytest.mark.parametrize("word", ["nodes", "node", "no", "Node", "NODES"])
def test_plural_singular_short_name_and_kind_are_understood(word):
    assert CATALOG.find(word).resource.plural == "nodes"


def test_the_group_distinguishes_kinds_of_the_same_name():
    assert CATALOG.find("cluster.kosmos.io").resource.group == "kosmos.io"
    assert CATALOG.find("clusters.cluster.x-k8s.io").resource.version == "v1beta2"


def test_a_version_can_be_asked_for():
    assert CATALOG.find("clusters.v1beta1.cluster.x-k8s.io").resource.version == "v1beta1"
    assert CATALOG.find("deployments.v1.apps").resource.kind == "Deployment"


def test_the_core_group_wins():
    assert CATALOG.find("ev").resource.group == ""


def test_an_ambiguous_word_lists_the_choices():
    with pytest.raises(UnknownResource, match="clusters.cluster.x-k8s.io, clusters.kosmos.io"):
        CATALOG.find("cluster")


def test_an_unknown_word_is_named():
    with pytest.raises(UnknownResource, match='no resource "gizmo"'):
        CATALOG.find("gizmo")


def test_kinds_are_found_by_version():
    assert CATALOG.by_kind("cluster.x-k8s.io/v1beta1", "Cluster").resource.version == "v1beta1"
    assert CATALOG.by_kind("v1", "Gizmo") is None


class Canned:
    """Transport with a few responses."""

    def __init__(self, answers):
        self.answers = answers

    async def send(self, request):
        if request.path not in self.answers:
            return Response(404, {}, b'{"kind":"Status","code":404,"reason":"NotFound"}')
        answer = self.answers[request.path]
        return answer if isinstance(answer, Response) else Response(200, {}, msgspec.json.encode(answer))


def aggregated(*groups):
    return {"kind": "APIGroupDiscoveryList", "items": list(groups)}


async def test_aggregated_discovery_is_read():
    nodes = {
        "resource": "nodes",
        "responseKind": {"kind": "Node"},
        "scope": "Cluster",
        "singularResource": "node",
        "shortNames": ["no"],
        "verbs": ["get", "list"],
        "subresources": [{"subresource": "status"}],
    }
    core = aggregated({"metadata": {}, "versions": [{"version": "v1", "resources": [nodes, {"resource": "proxies"}]}]})
    catalog = await discover(Canned({"/api": core, "/apis": aggregated()}))
    (found,) = catalog.known
    assert (found.resource.api_version, found.resource.namespaced, found.short_names) == ("v1", False, ("no",))
    assert (found.verbs, found.subresources) == ({"get", "list"}, {"status"})


async def test_plain_discovery_is_read_where_the_server_has_no_other():
    answers = {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": {
            "resources": [
                {"name": "nodes", "kind": "Node", "namespaced": False, "singularName": "", "verbs": ["get"]},
                {"name": "nodes/status", "kind": "Node", "namespaced": False, "singularName": "", "verbs": ["get"]},
            ]
        },
        "/apis": {
            "kind": "APIGroupList",
            "groups": [
                {
                    "name": "cluster.x-k8s.io",
                    "versions": [{"version": "v1beta1"}, {"version": "v1beta2"}, {"version": "gone"}],
                    "preferredVersion": {"version": "v1beta2"},
                }
            ],
        },
        "/apis/cluster.x-k8s.io/v1beta1": {
            "resources": [{"name": "clusters", "kind": "Cluster", "namespaced": True, "verbs": []}]
        },
        "/apis/cluster.x-k8s.io/v1beta2": {
            "resources": [{"name": "clusters", "kind": "Cluster", "namespaced": True, "verbs": []}]
        },
    }
    catalog = await discover(Canned(answers))
    assert catalog.find("nodes").subresources == {"status"}
    assert catalog.find("clusters").resource.api_version == "cluster.x-k8s.io/v1beta2"


async def test_a_server_without_end_of_groups_is_not_asked_for_each():
    groups = [{"name": f"g{number}", "versions": [{"version": "v1"}]} for number in range(MOST_VERSIONS + 1)]
    with pytest.raises(TransportError, match="lists more than 2000 group versions"):
        await discover(Canned({"/api": {"versions": []}, "/apis": {"groups": groups}}))


async def test_a_refusal_is_raised_as_such():
    refusal = Response(403, {}, b'{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}')
    with pytest.raises(Forbidden):
        await discover(Canned({"/api": refusal, "/apis": refusal}))
