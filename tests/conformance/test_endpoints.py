"""Every path with every method: 404 for an unknown path, 405 for an unsupported method, and nothing else succeeds."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import JSON, MERGE

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
DEFAULT = "/api/v1/namespaces/default"
SCALE = "/apis/apps/v1/namespaces/default/deployments/nobody/scale"
WATCH = "/api/v1/watch/namespaces/default"
REVIEWS = "/apis/authorization.k8s.io"
CUSTOM = "/apis/hooked.example.com"

NOTHING = (404,) * 7
READ_ONLY = (200, 405, 405, 405, 405, 405, 405)
ANY_METHOD = (200,) * 7
NO_METHOD = (405,) * 7
OBJECT = (404, 405, 405, 400, 404, 404, 405)
SUBRESOURCE = (404, 405, 405, 400, 404, 405, 405)
POSTED_ALONE = (405, 405, 500, 405, 405, 405, 405)

ANSWERS = {
    "/api/v1/nodes/nobody": OBJECT,
    "/api/v1/nodes/nobody/status": SUBRESOURCE,
    "/api/v1/nodes/nobody/scale": NOTHING,
    f"{DEFAULT}/pods/nobody/status/more": NOTHING,
    f"{DEFAULT}/configmaps/nobody/status": NOTHING,
    SCALE: SUBRESOURCE,
    f"{DEFAULT}/pods/nobody/eviction": (405, 405, 400, 405, 405, 405, 405),
    f"{DEFAULT}/finalize": (405, 405, 405, 400, 405, 405, 405),
    "/api/v1/pods": READ_ONLY,
    "/api/v1/pods/nobody": NOTHING,
    "/api/v1/watch/nodes": READ_ONLY,
    "/api/v1/watch/nodes/nobody": READ_ONLY,
    "/api/v1/watch/nodes/nobody/status": NOTHING,
    "/api/v1/watch/pods/nobody": NOTHING,
    f"{WATCH}/pods/nobody": READ_ONLY,
    f"{WATCH}/pods/nobody/status": NOTHING,
    f"{WATCH}/pods/nobody/eviction": NOTHING,
    f"{WATCH}/finalize": NOTHING,
    f"{WATCH}/bindings": NOTHING,
    "/api/v1/proxy/nodes": NOTHING,
    "/api/v1/proxy/nodes/nobody": NOTHING,
    "/api/v1/proxy/namespaces/default/configmaps": NOTHING,
    "/api/v1/proxy/namespaces/default/bindings": NOTHING,
    "/api/v1/redirect/nodes/nobody": NOTHING,
    "/apis/apps/v1/proxy/namespaces/default/deployments": NOTHING,
    f"{DEFAULT}/namespaces": NOTHING,
    f"{DEFAULT}/namespaces/default": NOTHING,
    f"{DEFAULT}/namespaces/default/status": NOTHING,
    f"{DEFAULT}/namespaces/default/finalize": NOTHING,
    f"{WATCH}/namespaces": NOTHING,
    "/api/v1/namespaces": (200, 405, 422, 405, 405, 405, 405),
    f"{DEFAULT}/bindings": POSTED_ALONE,
    f"{DEFAULT}/bindings/nobody": NOTHING,
    f"{DEFAULT}/bindings/nobody/status/more": NOTHING,
    "/api/v1/bindings": NOTHING,
    "/api/v9/namespaces/default/bindings": NOTHING,
    f"{REVIEWS}/v1/selfsubjectrulesreviews": (405, 405, 400, 405, 405, 405, 405),
    f"{REVIEWS}/v1/selfsubjectaccessreviews/nobody": NOTHING,
    f"{REVIEWS}/v9/selfsubjectaccessreviews": NOTHING,
    f"{REVIEWS}/v1/namespaces/default/subjectaccessreviews": NOTHING,
    f"{REVIEWS}/v1/namespaces/default/localsubjectaccessreviews": (405, 405, 422, 405, 405, 405, 405),
    f"{REVIEWS}/v1/localsubjectaccessreviews": NOTHING,
    f"{REVIEWS}/v1/watch/subjectaccessreviews": NOTHING,
    f"{REVIEWS}/v1/proxy/subjectaccessreviews": NOTHING,
    "/api": READ_ONLY,
    "/api/v1": READ_ONLY,
    "/apis": ANY_METHOD,
    "/apis/apps": ANY_METHOD,
    "/apis/apps/v1": READ_ONLY,
    "/apis/apps/v9": NOTHING,
    "/apis/nope.example/v1/things": NOTHING,
    "/version": READ_ONLY,
    "/healthz": ANY_METHOD,
    "/nope": NOTHING,
    f"{CUSTOM}/v1/gadgets": (200, 200, 404, 404, 404, 404, 404),
    f"{CUSTOM}/v1/gadgets/nobody": NOTHING,
    f"{CUSTOM}/v1/watch/gadgets": ANY_METHOD,
    f"{CUSTOM}/v1/watch/gadgets/nobody": ANY_METHOD,
    f"{CUSTOM}/v1/watch/namespaces/default/gadgets/nobody": ANY_METHOD,
    f"{CUSTOM}/v1/proxy/gadgets": NOTHING,
    f"{CUSTOM}/v1/proxy/namespaces/default/gadgets": NO_METHOD,
    f"{CUSTOM}/v1/proxy/namespaces/default/gadgets/nobody": NO_METHOD,
    f"{CUSTOM}/v1/proxy/namespaces/default/gadgets/nobody/status": NO_METHOD,
    f"{CUSTOM}/v3/gadgets": NOTHING,
    f"{CUSTOM}/v1/namespaces/default/gadgets/nobody/status": NOTHING,
}
"""Return the status of each method, in order; bodies are empty."""


@pytest.mark.parametrize("path", ANSWERS)
def test_each_method_gets_the_answer_it_deserves(http, gadgets, eventually, path):
    eventually(lambda: http.get(f"{CUSTOM}/v1/gadgets").status == 200, "the custom kind is served")

    assert tuple(ask(http, method, path) for method in METHODS) == ANSWERS[path]


def ask(http, method: str, path: str) -> int:
    body = {} if method in ("POST", "PUT", "PATCH") else None
    query = {"timeoutSeconds": 1} if method == "GET" else {"timeoutSeconds": 1, "dryRun": "All"}
    return http.request(method, path, body, content_type=MERGE if method == "PATCH" else JSON, query=query).status


def test_an_unknown_version_of_a_custom_group_is_a_plain_page(http, gadgets):
    answer = http.get(f"{CUSTOM}/v3/gadgets")

    assert (answer.status, answer.content) == (404, b"404 page not found\n")


@pytest.mark.parametrize(
    "path", [f"{REVIEWS}/v9/selfsubjectaccessreviews", f"{REVIEWS}/v1/nopes", f"{DEFAULT}/namespaces/default"]
)
def test_a_path_in_a_group_of_the_servers_own_is_not_found_by_a_status(http, path):
    assert http.get(path).reason == "NotFound"


def test_a_verb_that_custom_resources_do_not_know_is_named(http, gadgets, eventually):
    eventually(lambda: http.get(f"{CUSTOM}/v1/gadgets").status == 200, "the custom kind is served")

    answer = http.get(f"{CUSTOM}/v1/proxy/namespaces/default/gadgets/nobody")

    assert answer.message == 'proxy is not supported on resources of kind "gadgets.hooked.example.com"'


def test_a_read_by_proxy_deletes_nothing(http, configmaps, namespace):
    http.post(configmaps, {"metadata": {"name": "a"}})

    http.get(f"/api/v1/proxy/namespaces/{namespace}/configmaps")

    assert http.get(f"{configmaps}/a").status == 200


def test_a_subresource_that_a_custom_kind_does_not_have_is_not_found_by_its_object(http, gadgets, eventually):
    eventually(lambda: http.get(f"{CUSTOM}/v1/gadgets").status == 200, "the custom kind is served")

    answer = http.get(f"{CUSTOM}/v1/namespaces/default/gadgets/nobody/status")

    assert answer.message == 'gadgets.hooked.example.com "nobody" not found'


def test_a_custom_collection_is_changed_by_name_alone(http, gadgets, make_gadget, namespace):
    make_gadget("v1", "one")

    answer = http.put(f"{CUSTOM}/v1/namespaces/{namespace}/gadgets", {})

    assert (answer.status, answer.message) == (400, "name must be provided")
