"""Audit annotations of webhooks and policies."""

from __future__ import annotations

import json

import pytest

from nodeyard.testing.session import Session
from nodeyard.testing.webhooks import deny, patch

MUTATION = "mutation.webhook.admission.k8s.io"


@pytest.fixture(scope="module")
def server(another):
    return another(audit=True)


@pytest.fixture
def http(server) -> Session:
    return Session(server.url, server.authority.pem, server.admin_token)


@pytest.fixture
def audited(server, namespace, eventually):
    """Return the only audit event about an object of the test's namespace."""

    def find(name: str) -> dict:
        def found() -> list[dict]:
            events = server.audit_events(f'"{namespace}"')
            return [event for event in events if event["objectRef"].get("name") == name and "annotations" in event]

        (event,) = eventually(found, f"{name} is in the audit log")
        return event

    return find


def remarks(event: dict) -> dict[str, str]:
    """Return the annotations without those of authorization, which are about the user."""
    return {key: value for key, value in event["annotations"].items() if not key.startswith("authorization.k8s.io/")}


def annotated(**annotations: str):
    return lambda _request: {"allowed": True, "auditAnnotations": annotations}


def test_a_webhook_annotates_under_its_own_name(http, hooks, register, configmaps, audited):
    register("Validating", {"path": "/look"})
    register.settle()
    hooks.answer("/look", lambda _: {"allowed": True, "auditAnnotations": {"seen": "yes", "no/such/key": "x"}})

    http.post(configmaps, {"metadata": {"name": "a"}})

    assert remarks(audited("a")) == {"one.example.com/seen": "yes"}


def test_an_audit_event_has_user_request_and_response(http, hooks, register, configmaps, namespace, audited):
    register("Validating", {"path": "/deny"})
    register.settle()
    hooks.answer("/deny", lambda request: {**deny("no")(request), "auditAnnotations": {"why": "because"}})

    http.post(configmaps, {"metadata": {"name": "a"}})

    event = audited("a")
    assert (event["kind"], event["apiVersion"], event["level"]) == ("Event", "audit.k8s.io/v1", "Metadata")
    assert (event["stage"], event["verb"], event["requestURI"]) == ("ResponseComplete", "create", configmaps)
    assert event["user"]["username"] == "admin"
    assert event["userAgent"] == "conformance/1"
    assert event["objectRef"] == {
        "resource": "configmaps",
        "namespace": namespace,
        "name": "a",
        "apiVersion": "v1",
    }
    assert event["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": 'admission webhook "one.example.com" denied the request: no',
        "code": 400,
    }
    assert remarks(event) == {"one.example.com/why": "because"}


def test_every_mutating_call_is_noted_with_its_round(http, hooks, register, configmaps, audited):
    again = {"reinvocationPolicy": "IfNeeded"}
    name = register(
        "Mutating",
        {"path": "/first", "name": "first.example.com", **again},
        {"path": "/second", "name": "second.example.com"},
    )
    register.settle()
    hooks.answer("/first", annotated(first="yes"))
    change = patch({"op": "add", "path": "/metadata/labels", "value": {"added": "yes"}})
    hooks.answer("/second", lambda request: {**change(request), "auditAnnotations": {"second": "yes"}})

    http.post(configmaps, {"metadata": {"name": "a"}})

    found = remarks(audited("a"))
    assert json.loads(found.pop(f"{MUTATION}/round_0_index_1")) == {
        "configuration": name,
        "webhook": "second.example.com",
        "mutated": True,
    }
    unchanged = {"configuration": name, "webhook": "first.example.com", "mutated": False}
    assert json.loads(found.pop(f"{MUTATION}/round_0_index_0")) == unchanged
    assert json.loads(found.pop(f"{MUTATION}/round_1_index_0")) == unchanged
    assert found == {"first.example.com/first": "yes", "second.example.com/second": "yes"}


def test_a_failure_that_was_ignored_is_noted(http, hooks, register, configmaps, audited, fresh, eventually):
    nowhere = {"url": "https://127.0.0.1:1/", "caBundle": hooks.ca_bundle}
    ignored = {"clientConfig": nowhere, "failurePolicy": "Ignore"}
    name = register("Mutating", ignored)
    register("Validating", {"name": "probe.example.com"}, {"name": "two.example.com", **ignored})
    register.settle()

    def noted() -> dict[str, str] | None:
        made = fresh("a")
        http.post(configmaps, {"metadata": {"name": made}})
        found = remarks(audited(made))
        return found if f"failed-open.{MUTATION}/round_0_index_0" in found else None

    told = json.dumps({"configuration": name, "webhook": "one.example.com", "mutated": False}, separators=(",", ":"))
    assert eventually(noted, "the mutating webhook is called, too") == {
        f"failed-open.{MUTATION}/round_0_index_0": "one.example.com",
        f"{MUTATION}/round_0_index_0": told,
        "failed-open.validating.webhook.admission.k8s.io/round_0_index_1": "two.example.com",
    }


def test_a_policy_annotates_and_notes_violations(http, configmaps, enforce, audited):
    name = enforce(
        {"expression": "object.metadata.name != 'odd'", "message": "odd name"},
        {"expression": "!has(object.data)", "message": "no data"},
        actions=["Warn", "Audit"],
        auditAnnotations=[
            {"key": "named", "valueExpression": "'called ' + object.metadata.name"},
            {"key": "silent", "valueExpression": "null"},
        ],
    )

    http.post(configmaps, {"metadata": {"name": "odd"}, "data": {"k": "v"}})

    found = remarks(audited("odd"))
    assert json.loads(found.pop("validation.policy.admission.k8s.io/validation_failure")) == [
        {
            "message": "odd name",
            "policy": name,
            "binding": name,
            "expressionIndex": 0,
            "validationActions": ["Warn", "Audit"],
        }
    ]
    assert found == {f"{name}/named": "called odd"}
