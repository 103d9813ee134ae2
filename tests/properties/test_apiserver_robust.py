"""The server answers any request with a status and stays up."""

from __future__ import annotations

import asyncio
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeyard.apiserver.server import Server
from nodeyard.apiserver.transport import Request, User
from nodeyard.process.clock import VirtualClock

ADMIN = User("admin", ("system:masters",))
KINDS = [
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/events",
    "/api/v1/namespaces/default/services",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/batch/v1/namespaces/default/cronjobs",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
]
PATCHES = [
    "application/json",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/yaml",
]
NAMES = st.sampled_from(
    [
        "metadata",
        "name",
        "labels",
        "spec",
        "status",
        "kind",
        "apiVersion",
        "taints",
        "containers",
        "rules",
        "selector",
        "matchLabels",
        "template",
        "conditions",
        "type",
        "versions",
        "schema",
        "finalizers",
        "$patch",
        "op",
        "path",
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def requests(draw) -> Request:
    path = draw(st.sampled_from(KINDS))
    method = draw(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]))
    if method != "POST" or draw(st.integers(0, 9)) == 0:
        path += draw(st.sampled_from(["", "/x", "/x/status", "/x/scale", "/x/eviction", "/default"]))
    body = draw(VALUES)
    if isinstance(body, dict) and draw(st.booleans()):
        body["metadata"] = {"name": "x", **(body.get("metadata") if isinstance(body.get("metadata"), dict) else {})}
    raw = draw(st.binary(max_size=20)) if draw(st.integers(0, 9)) == 0 else json.dumps(body).encode()
    query = draw(
        st.dictionaries(
            st.sampled_from(["dryRun", "fieldManager", "force", "labelSelector", "fieldSelector", "limit", "continue"]),
            st.tuples(st.sampled_from(["All", "m", "true", "a=b", "!!", "1", "-1", "", "spec.nodeName=x"])),
            max_size=2,
        )
    )
    headers = {"content-type": draw(st.sampled_from(PATCHES)), "accept": "application/json"}
    return Request(method, path, query, headers, b"" if method == "GET" else raw, user=ADMIN)


@settings(max_examples=400)
@given(st.lists(requests(), min_size=1, max_size=6))
def test_no_request_makes_the_server_fail(given_requests):
    async def run() -> list[tuple[int, bytes]]:
        server = Server(VirtualClock(), seed=1)
        await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
        answers = []
        for request in given_requests:
            response = await server.handle(request)
            answers.append((response.status, response.payload()))
        return answers

    for status, body in asyncio.run(run()):
        shown = json.loads(body) if body.startswith(b"{") else {}
        is_ours = status == 500 and "the server's log says why" in shown.get("message", "")
        assert not is_ours, body
