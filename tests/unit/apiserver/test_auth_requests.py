"""Request attributes: the real server's reading of method, path and query."""

import pytest

from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.request_info import RequestInfo, parse
from nodeyard.apiserver.transport import request


def resource(verb: str, plural: str, **more: object) -> dict[str, object]:
    return {"is_resource": True, "verb": verb, "resource": plural, "version": "v1", "prefix": "api", **more}


CASES = {
    "a list": ("GET", "/api/v1/nodes", resource("list", "nodes")),
    "a list in a namespace": ("GET", "/api/v1/namespaces/x/pods", resource("list", "pods", namespace="x")),
    "a get": ("GET", "/api/v1/namespaces/x/pods/p", resource("get", "pods", namespace="x", name="p")),
    "a head": ("HEAD", "/api/v1/nodes/n", resource("get", "nodes", name="n")),
    "a create": ("POST", "/api/v1/nodes", resource("create", "nodes")),
    "an update": ("PUT", "/api/v1/nodes/n", resource("update", "nodes", name="n")),
    "a patch": ("PATCH", "/api/v1/nodes/n", resource("patch", "nodes", name="n")),
    "a delete": ("DELETE", "/api/v1/nodes/n", resource("delete", "nodes", name="n")),
    "a delete of many": ("DELETE", "/api/v1/nodes", resource("deletecollection", "nodes")),
    "a method nobody knows": ("BREW", "/api/v1/nodes", resource("", "nodes")),
    "a watch": ("GET", "/api/v1/nodes?watch=1", resource("watch", "nodes")),
    "a watch by an empty flag": ("GET", "/api/v1/nodes?watch=", resource("watch", "nodes")),
    "a watch switched off": ("GET", "/api/v1/nodes?watch=False", resource("list", "nodes")),
    "the old watch path": ("GET", "/api/v1/watch/nodes", resource("watch", "nodes")),
    "the old watch path of one object": (
        "GET",
        "/api/v1/watch/namespaces/x/pods/p",
        resource("watch", "pods", namespace="x", name="p"),
    ),
    "a list of one name": (
        "GET",
        "/api/v1/nodes?fieldSelector=metadata.name%3Dn",
        resource("list", "nodes", name="n"),
    ),
    "a list of all but one name": (
        "GET",
        "/api/v1/nodes?fieldSelector=metadata.name%21%3Dn",
        resource("list", "nodes"),
    ),
    "a list of a name that no path could hold": (
        "GET",
        "/api/v1/nodes?fieldSelector=metadata.name%3D..",
        resource("list", "nodes"),
    ),
    "a list by a selector that means nothing": (
        "GET",
        "/api/v1/nodes?fieldSelector=metadata.name%3Dn,what",
        resource("list", "nodes"),
    ),
    "a namespace": ("GET", "/api/v1/namespaces/x", resource("get", "namespaces", namespace="x", name="x")),
    "all namespaces": ("GET", "/api/v1/namespaces", resource("list", "namespaces")),
    "a namespace's status": (
        "PUT",
        "/api/v1/namespaces/x/status",
        resource("update", "namespaces", namespace="x", name="x", subresource="status"),
    ),
    "a namespace's end": (
        "PUT",
        "/api/v1/namespaces/x/finalize",
        resource("update", "namespaces", namespace="x", name="x", subresource="finalize"),
    ),
    "a subresource": (
        "POST",
        "/api/v1/namespaces/x/pods/p/eviction",
        resource("create", "pods", namespace="x", name="p", subresource="eviction"),
    ),
    "a resource of a group": (
        "PATCH",
        "/apis/apps/v1/namespaces/x/deployments/d/scale",
        resource("patch", "deployments", prefix="apis", group="apps", namespace="x", name="d", subresource="scale"),
    ),
    "an empty namespace": ("GET", "/api/v1/namespaces//pods", resource("list", "pods")),
    "a group's versions": ("GET", "/apis/apps", {"verb": "get"}),
    "a group version": ("GET", "/apis/apps/v1", {"verb": "get", "prefix": "apis"}),
    "the core version": ("GET", "/api/v1", {"verb": "get"}),
    "the root": ("GET", "/", {"verb": "get"}),
    "health": ("POST", "/healthz/ping/x", {"verb": "post"}),
}


@pytest.mark.parametrize(("method", "url", "expected"), CASES.values(), ids=CASES.keys())
def test_a_request_is_read_as_the_real_server_reads_it(method: str, url: str, expected: dict[str, object]) -> None:
    info = parse(request(method, url))
    wanted = {field: expected.get(field, default) for field, default in zip(*defaults(), strict=True)}
    assert {field: getattr(info, field) for field in wanted} == wanted


def defaults() -> tuple[tuple[str, ...], tuple[object, ...]]:
    names = ("verb", "is_resource", "prefix", "group", "version", "namespace", "resource", "subresource", "name")
    blank = RequestInfo("", "")
    return names, tuple(getattr(blank, name) for name in names)


def test_the_parts_start_at_the_resource() -> None:
    info = parse(request("GET", "/apis/apps/v1/namespaces/x/deployments/d/proxy/some/path"))
    assert info.parts == ("deployments", "d", "proxy", "some", "path")


def test_a_bare_watch_is_refused_in_plain_text() -> None:
    with pytest.raises(ApiError) as caught:
        parse(request("GET", "/api/v1/watch"))
    assert caught.value.code == 500
    assert caught.value.plain
    assert "unable to determine kind and namespace from url, /api/v1/watch" in caught.value.message
