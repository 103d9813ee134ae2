"""Admission webhooks, called over TLS."""

from __future__ import annotations

import pytest

from nodeyard.testing.webhooks import WebhookServer, deny, patch, webhook

GROUP = "/apis/admissionregistration.k8s.io/v1"


def configmap(name: str = "a", **labels: str) -> dict:
    return {"metadata": {"name": name, "labels": labels}, "data": {"k": "v"}}


def called(http, hooks, configmaps: str) -> list[str]:
    hooks.clear_requests()
    http.post(configmaps, configmap("probe"), query={"dryRun": "All"})
    return list(hooks.paths)


def test_a_webhook_gets_the_complete_review(http, hooks, register, configmaps, namespace):
    register("Validating", {})
    register.settle()

    http.post(configmaps, configmap())
    http.patch(f"{configmaps}/a", {"data": {"k": "w"}})
    http.delete(f"{configmaps}/a")

    create, update, delete = hooks.requests
    assert [r["operation"] for r in hooks.requests] == ["CREATE", "UPDATE", "DELETE"]
    assert create["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert create["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (create["namespace"], create["name"], create["dryRun"]) == (namespace, "a", False)
    assert create["userInfo"]["username"] == "admin"
    assert "system:masters" in create["userInfo"]["groups"]
    assert create["object"]["data"] == {"k": "v"}
    assert create["oldObject"] is None
    assert create["options"]["kind"] == "CreateOptions"
    assert (update["object"]["data"], update["oldObject"]["data"]) == ({"k": "w"}, {"k": "v"})
    assert (delete["object"], delete["oldObject"]["data"]) == (None, {"k": "w"})


def test_webhooks_see_each_object_of_a_deleted_collection_without_a_name(http, hooks, register, configmaps, namespace):
    register("Validating", {})
    register.settle()
    for name in ("a", "b"):
        http.post(configmaps, configmap(name, of="many"))
    hooks.clear_requests()

    http.delete(configmaps, query={"labelSelector": "of=many"})

    told = sorted(hooks.requests, key=lambda each: each["oldObject"]["metadata"]["name"])
    assert [each["oldObject"]["metadata"]["name"] for each in told] == ["a", "b"]
    said = {(each["operation"], each["namespace"], each.get("name", "")) for each in told}
    assert said == {("DELETE", namespace, "")}


def test_a_denial_names_the_webhook_and_its_reason(http, hooks, register, configmaps):
    register("Validating", {"path": "/deny"})
    register.settle()
    hooks.answer("/deny", deny("not today"))

    answer = http.post(configmaps, configmap())

    assert (answer.status, answer.reason) == (400, "")
    assert answer.message == 'admission webhook "one.example.com" denied the request: not today'
    assert http.get(f"{configmaps}/a").status == 404


def test_a_denial_may_choose_its_code(http, hooks, register, configmaps):
    register("Validating", {"path": "/deny"})
    register.settle()
    hooks.answer("/deny", deny("try later", 429))

    assert http.post(configmaps, configmap()).status == 429


def test_a_mutation_is_stored_and_seen_by_validation(http, hooks, register, configmaps, eventually):
    register("Mutating", {"path": "/patch"})
    register("Validating", {"path": "/look", "name": "two.example.com"})
    eventually(lambda: called(http, hooks, configmaps) == ["/patch", "/look"], "both webhooks are called")
    hooks.answer("/patch", patch({"op": "add", "path": "/metadata/labels/added", "value": "yes"}))
    hooks.requests.clear()

    answer = http.post(configmaps, configmap(x="y"))

    assert answer.json["metadata"]["labels"] == {"x": "y", "added": "yes"}
    assert hooks.requests[-1]["object"]["metadata"]["labels"] == {"x": "y", "added": "yes"}


def test_warnings_reach_the_caller(http, hooks, register, configmaps):
    register("Validating", {"path": "/warn"})
    register.settle()
    hooks.answer("/warn", lambda _: {"allowed": True, "warnings": ["mind the gap"]})

    assert http.post(configmaps, configmap()).warnings == ['299 - "mind the gap"']


def test_a_webhook_can_select_by_labels(http, hooks, register, configmaps):
    register("Validating", {"path": "/deny", "objectSelector": {"matchLabels": {"hook": "yes"}}})
    register.settle()
    hooks.answer("/deny", deny("no"))

    assert http.post(configmaps, configmap("plain")).status == 201
    assert http.post(configmaps, configmap("chosen", hook="yes")).status == 400


def test_match_conditions_decide_before_the_call(http, hooks, register, configmaps):
    condition = {"name": "big", "expression": "!has(object.data) || object.data.k != 'v'"}
    register("Validating", {"path": "/deny", "matchConditions": [condition]}, {"name": "probe.example.com"})
    register.settle()
    hooks.answer("/deny", deny("no"))

    assert http.post(configmaps, configmap("small")).status == 201
    assert http.post(configmaps, {"metadata": {"name": "large"}, "data": {"k": "other"}}).status == 400


def test_an_unreachable_webhook_fails_the_write_or_not(http, register, configmaps, hooks, eventually):
    nowhere = {"url": "https://127.0.0.1:1/", "caBundle": hooks.ca_bundle}
    register("Validating", {"clientConfig": nowhere, "objectSelector": {"matchLabels": {"strict": "yes"}}})
    register("Validating", {"clientConfig": nowhere, "failurePolicy": "Ignore"}, {"name": "probe.example.com"})
    register.settle()

    strict = http.post(configmaps, configmap("a", strict="yes"))
    lenient = http.post(configmaps, configmap("b"))

    assert (strict.status, strict.reason) == (500, "InternalError")
    assert 'failed calling webhook "one.example.com": failed to call webhook: Post' in strict.message
    assert lenient.status == 201


def test_a_server_without_a_trusted_certificate_is_not_trusted(http, hooks, register, configmaps):
    with WebhookServer() as stranger:
        untrusted = {"url": f"{stranger.url}/", "caBundle": hooks.ca_bundle}
        register("Validating", {"clientConfig": untrusted}, {"name": "probe.example.com"})
        register.settle()

        answer = http.post(configmaps, configmap())

        assert answer.status == 500
        assert "certificate" in answer.message
        assert stranger.requests == []


def test_a_webhook_with_side_effects_refuses_dry_runs(http, hooks, register, configmaps):
    body = {
        "metadata": {"name": "effects"},
        "webhooks": [{**webhook(hooks, "default"), "sideEffects": "Some"}],
    }

    answer = http.post(f"{GROUP}/validatingwebhookconfigurations", body)

    assert answer.status == 422
    assert answer.causes[0]["field"] == "webhooks[0].sideEffects"


def test_a_dry_run_is_marked_as_one(http, hooks, register, configmaps):
    register("Validating", {})
    register.settle()

    http.post(configmaps, configmap(), query={"dryRun": "All"})

    assert [r["dryRun"] for r in hooks.requests] == [True]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "short"}, "webhooks[0].name"),
        ({"clientConfig": {"url": "http://127.0.0.1/"}}, "webhooks[0].clientConfig.url"),
        ({"clientConfig": {}}, "webhooks[0].clientConfig"),
        ({"admissionReviewVersions": []}, "webhooks[0].admissionReviewVersions"),
        ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds"),
        ({"matchConditions": [{"name": "x", "expression": "nope.nope"}]}, "webhooks[0].matchConditions[0].expression"),
    ],
    ids=["name", "http", "nowhere", "versions", "timeout", "condition"],
)
def test_a_faulty_configuration_is_refused(http, hooks, change, field):
    body = {"metadata": {"name": "faulty"}, "webhooks": [{**webhook(hooks, "default"), **change}]}

    answer = http.post(f"{GROUP}/validatingwebhookconfigurations", body)

    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.causes]
