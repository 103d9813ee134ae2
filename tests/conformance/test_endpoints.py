"""Every path with every method: what is not there is 404, what is not meant that way is 405, nothing else succeeds."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import JSON, MERGE

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
DEFAULT = "/api/v1/namespaces/default"
SCALE = "/apis/apps/v1/namespaces/default/deployments/nobody/scale"
CUSTOM = "/apis/hooked.example.com"

NOTHING = (404,) * 7
READ_ONLY = (200, 405, 405, 405, 405, 405, 405)
ANY_METHOD = (200,) * 7
OBJECT = (404, 405, 405, 400, 404, 404, 405)
SUBRESOURCE = (404, 405, 405, 400, 404, 405, 405)

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
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/nobody": NOTHING,
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
    f"{CUSTOM}/v3/gadgets": NOTHING,
    f"{CUSTOM}/v1/namespaces/default/gadgets/nobody/status": NOTHING,
}
"""The status of the answer to each of the methods, in their order; what is sent is empty."""


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


def test_a_custom_collection_is_changed_by_name_alone(http, gadgets, make_gadget, namespace):
    make_gadget("v1", "one")

    answer = http.put(f"{CUSTOM}/v1/namespaces/{namespace}/gadgets", {})

    assert (answer.status, answer.message) == (400, "name must be provided")
