"""Calls of webhooks: by service, timeouts, reinvocation, and conversion of versions."""

from __future__ import annotations

import pytest

from nodeyard.testing.webhooks import WebhookServer, patch, webhook

VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def configmap(name: str = "a", **labels: str) -> dict:
    return {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}


# by service


def by_service(hooks, namespace: str, **more) -> dict:
    return {"service": {"name": "hook", "namespace": namespace, **more}, "caBundle": hooks.ca_bundle}


@pytest.fixture
def service(http, namespace):
    """A Service whose name resolves to this machine."""
    spec = {"type": "ExternalName", "externalName": "localhost"}
    answer = http.post(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "hook"}, "spec": spec})
    assert answer.status == 201, answer.content
    return f"hook.{namespace}.svc"


def test_a_service_is_called_under_its_own_name(http, configmaps, namespace, service, eventually):
    with WebhookServer(service) as named:
        config = by_service(named, namespace, port=named.port, path="/checks")
        body = {"metadata": {"name": "by-service"}, "webhooks": [webhook(named, namespace, clientConfig=config)]}
        assert http.post(VALIDATING, body).status == 201
        try:
            eventually(lambda: called(http, named, configmaps), "the service is called")
        finally:
            http.delete(f"{VALIDATING}/by-service")

        assert set(named.paths) == {"/checks"}


def test_the_path_of_a_service_begins_with_a_slash(http, hooks, namespace):
    config = by_service(hooks, namespace, path="checks/")
    body = {"metadata": {"name": "by-service"}, "webhooks": [webhook(hooks, namespace, clientConfig=config)]}

    answer = http.post(VALIDATING, body)

    assert answer.status == 422
    assert answer.causes[0]["field"] == "webhooks[0].clientConfig.service.path"


def called(http, hooks, configmaps: str) -> bool:
    answer = http.post(configmaps, configmap("probe"), query={"dryRun": "All"})
    return answer.status == 201 and bool(hooks.requests)


def is_service_known(http, configmaps: str) -> bool:
    answer = http.post(configmaps, configmap("probe"), query={"dryRun": "All"})
    return 'service "hook" not found' not in answer.message


def test_a_server_with_another_name_than_the_service_is_not_trusted(
    http, hooks, register, configmaps, namespace, service, eventually
):
    config = by_service(hooks, namespace, port=hooks.port)
    register("Validating", {"clientConfig": config}, {"name": "probe.example.com"})
    register.settle()
    eventually(lambda: is_service_known(http, configmaps), "the service is known")

    answer = http.post(configmaps, configmap())

    assert (answer.status, answer.reason) == (500, "InternalError")
    assert f'Post "https://{service}:{hooks.port}/?timeout=10s": tls: failed to verify certificate:' in answer.message


def test_a_missing_service_fails_the_write(http, hooks, register, configmaps, namespace):
    register("Validating", {"clientConfig": by_service(hooks, namespace)}, {"name": "probe.example.com"})
    register.settle()

    answer = http.post(configmaps, configmap())

    assert (answer.status, answer.reason) == (500, "InternalError")
    assert answer.message == (
        'Internal error occurred: failed calling webhook "one.example.com": failed to call webhook: '
        f'Post "https://hook.{namespace}.svc:443/?timeout=10s": service "hook" not found'
    )


def test_a_service_without_that_port_fails_the_write(http, hooks, register, configmaps, namespace, eventually):
    spec = {"ports": [{"port": 443}]}
    http.post(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "hook"}, "spec": spec})
    register("Validating", {"clientConfig": by_service(hooks, namespace, port=8443)}, {"name": "probe.example.com"})
    register.settle()
    eventually(lambda: is_service_known(http, configmaps), "the service is known")

    answer = http.post(configmaps, configmap())

    assert answer.status == 500
    assert answer.message.endswith('no service port 8443 found for service "hook"')


# timeouts


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
def test_a_webhook_that_does_not_answer_in_time_has_failed(http, hooks, register, configmaps, policy, status):
    register("Validating", {"path": "/slow", "timeoutSeconds": 1, "failurePolicy": policy})
    register.settle()
    hooks.keep_silent("/slow")

    answer = http.post(configmaps, configmap())

    assert answer.status == status
    assert hooks.paths == ["/slow"]
    if policy == "Fail":
        assert answer.message == (
            'Internal error occurred: failed calling webhook "one.example.com": failed to call webhook: '
            f'Post "{hooks.url}/slow?timeout=1s": context deadline exceeded'
        )


# reinvocation


def label(key: str, value: str):
    return patch({"op": "add", "path": f"/metadata/labels/{key}", "value": value})


@pytest.mark.parametrize(
    ("policy", "calls"),
    [("IfNeeded", ["/first", "/second", "/first"]), ("Never", ["/first", "/second"])],
)
def test_a_webhook_with_reinvocation_sees_later_changes(http, hooks, register, configmaps, policy, calls):
    first = {"path": "/first", "name": "first.example.com", "reinvocationPolicy": policy}
    register("Mutating", first, {"path": "/second", "name": "second.example.com", "reinvocationPolicy": "IfNeeded"})
    register.settle()
    hooks.answer("/second", label("second", "yes"))

    answer = http.post(configmaps, configmap(x="y"))

    assert answer.json["metadata"]["labels"] == {"x": "y", "second": "yes"}
    assert hooks.paths == calls
    assert hooks.requests[0]["object"]["metadata"]["labels"] == {"x": "y"}
    if policy == "IfNeeded":
        assert hooks.requests[2]["object"]["metadata"]["labels"] == {"x": "y", "second": "yes"}


def test_no_webhook_is_called_again_when_nothing_changed(http, hooks, register, gadgets, make_gadget):
    again = {"reinvocationPolicy": "IfNeeded", **only_v1(gadgets, "Exact")}
    second = {"path": "/second", "name": "two.example.com", **again}
    register("Mutating", {"path": "/first", **again}, second, {"name": "probe.example.com"})
    register.settle()
    hooks.answer("/second", patch({"op": "replace", "path": "/metadata/name", "value": "same"}))

    assert make_gadget("v1", "same").status == 201
    assert hooks.paths == ["/first", "/second"]


def test_any_patch_of_a_new_built_in_object_is_a_change(http, hooks, register, configmaps):
    again = {"reinvocationPolicy": "IfNeeded"}
    register("Mutating", {"path": "/first", **again}, {"path": "/second", "name": "two.example.com", **again})
    register.settle()
    hooks.answer("/second", label("x", "y"))

    http.post(configmaps, configmap(x="y"))
    http.patch(f"{configmaps}/a", {"metadata": {"labels": {"x": "y"}}})

    assert hooks.paths == ["/first", "/second", "/first", "/first", "/second"]


def test_there_is_no_third_round(http, hooks, register, configmaps):
    again = {"reinvocationPolicy": "IfNeeded"}
    register("Mutating", {"path": "/first", **again}, {"path": "/second", "name": "two.example.com", **again})
    register.settle()
    rounds = iter(range(10))
    hooks.answer("/first", lambda request: label("first", f"r{next(rounds)}")(request))
    hooks.answer("/second", lambda request: label("second", f"r{next(rounds)}")(request))

    answer = http.post(configmaps, configmap(x="y"))

    assert hooks.paths == ["/first", "/second", "/first", "/second"]
    assert answer.json["metadata"]["labels"] == {"x": "y", "first": "r2", "second": "r3"}


# versions


def only_v1(gadgets: str, policy: str) -> dict:
    rules = [{"apiGroups": [gadgets], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["gadgets"]}]
    return {"rules": rules, "matchPolicy": policy}


def test_equivalent_writes_are_shown_in_the_version_of_the_rule(http, hooks, register, gadgets, make_gadget):
    register("Mutating", {"path": "/gadget", **only_v1(gadgets, "Equivalent")}, {"name": "probe.example.com"})
    register.settle()
    hooks.answer("/gadget", patch({"op": "add", "path": "/spec", "value": {"seen": "yes"}}))

    answer = make_gadget("v2", "a")

    assert (answer.status, answer.json["apiVersion"], answer.json["spec"]) == (201, f"{gadgets}/v2", {"seen": "yes"})
    (request,) = hooks.requests
    assert request["kind"] == {"group": gadgets, "version": "v1", "kind": "Gadget"}
    assert request["resource"] == {"group": gadgets, "version": "v1", "resource": "gadgets"}
    assert request["requestKind"] == {"group": gadgets, "version": "v2", "kind": "Gadget"}
    assert request["requestResource"] == {"group": gadgets, "version": "v2", "resource": "gadgets"}
    assert request["object"]["apiVersion"] == f"{gadgets}/v1"


def test_with_exact_matching_only_the_named_version_counts(http, hooks, register, gadgets, make_gadget):
    register("Validating", {"path": "/gadget", **only_v1(gadgets, "Exact")}, {"name": "probe.example.com"})
    register.settle()

    assert make_gadget("v2", "a").status == 201
    assert hooks.paths == []
    assert make_gadget("v1", "b").status == 201
    assert hooks.paths == ["/gadget"]


# pod subresources


@pytest.fixture
def pod(http, namespace):
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "c", "image": "i"}]}
    assert http.post(path, {"metadata": {"name": "p"}, "spec": spec}).status == 201
    yield f"{path}/p"
    http.delete(f"{path}/p", {"gracePeriodSeconds": 0})


@pytest.mark.parametrize(
    ("subresource", "body"),
    [
        ("binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
        ("eviction", {"metadata": {"name": "p"}}),
    ],
)
def test_warnings_about_a_binding_or_eviction_reach_the_caller(http, hooks, register, pod, subresource, body):
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [f"pods/{subresource}"]}]
    register("Validating", {"path": "/warn", "rules": rules}, {"name": "probe.example.com"})
    register.settle()
    hooks.answer("/warn", lambda _: {"allowed": True, "warnings": ["mind the gap"]})

    answer = http.post(f"{pod}/{subresource}", body)

    assert (answer.status, answer.warnings) == (201, ['299 - "mind the gap"'])
    assert hooks.requests[0]["subResource"] == subresource
