"""Server-side apply: merging, ownership, conflicts."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import APPLY


def configmap(**data: str) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


@pytest.fixture
def apply(http, configmaps):
    def send(manager: str, body: dict, **query):
        return http.patch(f"{configmaps}/a", body, APPLY, query={"fieldManager": manager, **query})

    return send


def owners(answer) -> dict[str, dict]:
    return {entry["manager"]: entry for entry in answer.json["metadata"]["managedFields"]}


def test_an_apply_creates_and_records_its_manager(apply):
    answer = apply("one", configmap(k="v"))

    assert answer.status == 201
    entry = owners(answer)["one"]
    assert (entry["operation"], entry["apiVersion"], entry["fieldsType"]) == ("Apply", "v1", "FieldsV1")
    assert entry["fieldsV1"] == {"f:data": {"f:k": {}}}


def test_an_apply_without_changes_keeps_the_revision(apply):
    first = apply("one", configmap(k="v")).json

    assert apply("one", configmap(k="v")).json == first


def test_a_field_left_out_of_the_next_apply_goes(apply):
    apply("one", configmap(k="v", l="w"))

    assert apply("one", configmap(k="v")).json["data"] == {"k": "v"}


def test_a_field_that_another_manager_applies_too_stays(apply):
    apply("one", configmap(k="v", l="w"))
    apply("two", configmap(l="w"))

    assert apply("one", configmap(k="v")).json["data"] == {"k": "v", "l": "w"}


def test_two_managers_own_their_fields(apply):
    apply("one", configmap(k="v"))
    answer = apply("two", configmap(l="w"))

    assert answer.json["data"] == {"k": "v", "l": "w"}
    assert owners(answer)["two"]["fieldsV1"] == {"f:data": {"f:l": {}}}


def test_changing_anothers_field_conflicts(apply):
    apply("one", configmap(k="v"))

    answer = apply("two", configmap(k="w"))

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == 'Apply failed with 1 conflict: conflict with "one": .data.k'
    assert answer.causes == [{"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.k"}]


def test_force_takes_the_field_over(apply):
    apply("one", configmap(k="v"))

    answer = apply("two", configmap(k="w"), force="true")

    assert answer.json["data"] == {"k": "w"}
    assert owners(answer).keys() == {"two"}


def test_an_update_takes_over_applied_fields(http, configmaps, apply):
    apply("one", configmap(k="v"))

    http.patch(f"{configmaps}/a", {"data": {"k": "w"}}, query={"fieldManager": "hand"})
    answer = apply("one", configmap(k="v"))

    assert answer.status == 409
    assert 'conflict with "hand" using v1: .data.k' in answer.message


def test_a_create_is_owned_by_the_user_agent(http, configmaps):
    answer = http.post(configmaps, configmap(k="v"))

    assert owners(answer).keys() == {"conformance"}
    assert owners(answer)["conformance"]["operation"] == "Update"
    assert owners(answer)["conformance"]["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}


def test_a_status_write_is_recorded_apart(http, fresh):
    name = fresh("node")
    http.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {"a": "b"}}})

    answer = http.patch(f"/api/v1/nodes/{name}/status", {"status": {"capacity": {"cpu": "1"}}})

    entries = [entry for entry in answer.json["metadata"]["managedFields"] if entry.get("subresource") == "status"]
    cpu = {".": {}, "f:cpu": {}}
    assert [entry["fieldsV1"] for entry in entries] == [{"f:status": {"f:allocatable": cpu, "f:capacity": cpu}}]
    http.delete(f"/api/v1/nodes/{name}")


def test_keyed_lists_merge_item_by_item(http, namespace):
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/d"

    def body(*containers: dict) -> dict:
        template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": list(containers)}}
        spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}

    http.patch(path, body({"name": "one", "image": "i:1"}), APPLY, query={"fieldManager": "a"})
    answer = http.patch(path, body({"name": "two", "image": "i:2"}), APPLY, query={"fieldManager": "b"})

    containers = answer.json["spec"]["template"]["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in containers] == [("one", "i:1"), ("two", "i:2")]


def test_atomic_lists_are_owned_whole(http, fresh):
    path = f"/api/v1/nodes/{fresh('node')}"
    name = path.rsplit("/", 1)[1]

    def body(key: str) -> dict:
        taints = [{"key": key, "effect": "NoSchedule"}]
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": taints}}

    http.patch(path, body("a"), APPLY, query={"fieldManager": "one"})
    answer = http.patch(path, body("b"), APPLY, query={"fieldManager": "two"})

    assert answer.status == 409
    assert answer.causes[0]["field"] == ".spec.taints"
    http.delete(path)


def test_managed_fields_may_not_be_applied(apply):
    body = configmap(k="v")
    body["metadata"]["managedFields"] = [{"manager": "x"}]

    answer = apply("one", body)

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message == "metadata.managedFields must be nil"


def test_an_unknown_field_cannot_be_applied(apply):
    answer = apply("one", {**configmap(k="v"), "foo": 1})

    assert answer.status == 500
    assert ".foo: field not declared in schema" in answer.message


@pytest.mark.parametrize(
    "body",
    [
        {"data": {}},
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
    ],
    ids=["no kind", "no name", "other name"],
)
def test_an_apply_names_its_object(apply, body):
    assert apply("one", body).status == 400


def test_an_apply_can_be_a_dry_run(http, configmaps, apply):
    assert apply("one", configmap(k="v"), dryRun="All").status == 201
    assert http.get(f"{configmaps}/a").status == 404


def test_managed_fields_can_be_reset(http, configmaps, apply):
    apply("one", configmap(k="v"))

    answer = http.patch(f"{configmaps}/a", {"metadata": {"managedFields": [{}]}})

    assert "managedFields" not in answer.json["metadata"]


def test_an_apply_to_an_existing_object_may_omit_the_name(http, configmaps):
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"a": "b"}}}
    missing = http.patch(f"{configmaps}/a", nameless, APPLY, query={"fieldManager": "m"})
    http.post(configmaps, {"metadata": {"name": "a"}})
    found = http.patch(f"{configmaps}/a", nameless, APPLY, query={"fieldManager": "m"})

    assert missing.status == 400
    assert missing.message == "the name of the object (a based on URL) was undeterminable: name must be provided"
    assert (found.status, found.json["metadata"]["labels"]) == (200, {"a": "b"})


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ("x", ".metadata: expected map, got &{x}"),
        ({"name": 3}, ".metadata.name: expected string, got &value.valueUnstructured{Value:3}"),
    ],
    ids=["metadata", "name"],
)
def test_metadata_of_the_wrong_type_cannot_be_applied(http, configmaps, metadata, why):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

    answer = http.patch(f"{configmaps}/a", body, APPLY, query={"fieldManager": "m"})

    assert answer.status == 500
    assert answer.message == f"failed to create typed patch object (/; /v1, Kind=ConfigMap): {why}"
