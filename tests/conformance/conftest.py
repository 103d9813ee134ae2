"""Conformance: each case is written once and runs against both servers; a case that the real one fails is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from nodeyard.testing.session import Session
from nodeyard.testing.webhooks import WebhookServer, webhook

ADMISSION = "/apis/admissionregistration.k8s.io/v1"

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def another(api) -> Iterator[Callable[..., Any]]:
    """`another(audit=True)`: a server of the same sort as `api`, for one file, with options of its own."""
    from nodeyard.testing.controlplane import ControlPlane
    from nodeyard.testing.embedded import EmbeddedServer

    kind = ControlPlane if api.is_real else EmbeddedServer
    with ExitStack() as servers:
        yield lambda **options: servers.enter_context(kind(**options))


@pytest.fixture
def http(api) -> Session:
    """HTTP client with the administrator's rights."""
    return Session(api.url, api.authority.pem, api.admin_token)


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """Return unique names: `fresh("node")` is `node-17`."""
    return lambda word: f"{word}-{next(_numbers)}"


@pytest.fixture
def namespace(http: Session, fresh) -> Iterator[str]:
    name = fresh("ns")
    answer = http.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.status == 201, answer.content
    yield name
    http.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def configmaps(namespace: str) -> str:
    """Return the path of a collection for tests."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
def hooks() -> Iterator[WebhookServer]:
    with WebhookServer() as server:
        yield server


@pytest.fixture
def register(http: Session, hooks: WebhookServer, namespace: str, fresh, configmaps: str, eventually) -> Iterator[Any]:
    """Register webhooks for the configmaps of the test's namespace; `settle` waits until the server calls them."""
    made: list[str] = []

    def make(kind: str, *webhooks: dict[str, Any]) -> str:
        name = fresh("hooks")
        body = {"metadata": {"name": name}, "webhooks": [webhook(hooks, namespace, **each) for each in webhooks]}
        plural = f"{kind.lower()}webhookconfigurations"
        answer = http.post(f"{ADMISSION}/{plural}", body)
        assert answer.status == 201, answer.content
        made.append(f"{ADMISSION}/{plural}/{name}")
        return name

    def settle() -> None:
        eventually(lambda: probe_is_seen(http, hooks, configmaps), "the webhooks are called")
        hooks.clear_requests()

    make.settle = settle  # type: ignore[attr-defined]
    yield make
    for path in made:
        http.delete(path)


def probe_is_seen(http: Session, hooks: WebhookServer, configmaps: str) -> bool:
    before = len(hooks.requests)
    http.post(configmaps, {"metadata": {"name": "probe", "labels": {"hook": "yes"}}}, query={"dryRun": "All"})
    return len(hooks.requests) > before


@pytest.fixture
def enforce(http, namespace, fresh, eventually, configmaps):
    """Enforce a policy on the configmaps of the test's namespace; returns its name."""
    made = []

    def make(*validations: dict, actions=("Deny",), binding: dict | None = None, **spec) -> str:
        name = fresh("policy")
        marker = {"expression": "object.metadata.name != 'canary'", "message": "canary"}
        match = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
        policy = {
            "failurePolicy": "Fail",
            "matchConstraints": {**match, "resourceRules": [{**rule, "resources": ["configmaps"]}]},
            "validations": [*validations, marker],
            **spec,
        }
        bound = {"policyName": name, "validationActions": list(actions), "matchResources": match, **(binding or {})}
        for plural, body in (
            ("validatingadmissionpolicies", policy),
            ("validatingadmissionpolicybindings", bound),
        ):
            answer = http.post(f"{ADMISSION}/{plural}", {"metadata": {"name": name}, "spec": body})
            assert answer.status == 201, answer.content
            made.append(f"{ADMISSION}/{plural}/{name}")
        eventually(lambda: is_in_force(http, configmaps, name), "the policy is enforced")
        return name

    yield make
    for path in made:
        http.delete(path)


def is_in_force(http: Session, configmaps: str, policy: str) -> bool:
    """Return whether the policy complains about the canary."""
    answer = http.post(configmaps, {"metadata": {"name": "canary"}}, query={"dryRun": "All"})
    return any(f"'{policy}'" in said for said in (answer.message, *answer.warnings))


@pytest.fixture(scope="session")
def gadgets(api) -> Iterator[str]:
    """Install a CRD with two versions of the same schema; v1 is stored."""
    version = {
        "served": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    group = "hooked.example.com"
    names = {"plural": "gadgets", "kind": "Gadget"}
    versions = [{**version, "name": "v1", "storage": True}, {**version, "name": "v2", "storage": False}]
    api.rest.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"gadgets.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
        }
    )
    yield group
    api.rest.call("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.{group}")


@pytest.fixture
def make_gadget(http, gadgets, namespace, eventually):
    def make(version: str, name: str):
        path = f"/apis/{gadgets}/{version}/namespaces/{namespace}/gadgets"
        body = {"apiVersion": f"{gadgets}/{version}", "kind": "Gadget", "metadata": {"name": name}}
        eventually(lambda: http.get(path).status == 200, "the kind is served")
        return http.post(path, body)

    return make
