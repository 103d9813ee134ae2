"""Single objects: create, read, update, and refusals."""

from __future__ import annotations

import re

import pytest


def configmap(name: str, **data: str) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_a_created_object_gets_identity_and_comes_back_on_get(http, configmaps):
    created = http.post(configmaps, configmap("a", k="v"))

    assert created.status == 201
    metadata = created.json["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])
    assert metadata["resourceVersion"].isdigit()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["creationTimestamp"])
    assert "generation" not in metadata
    assert http.get(f"{configmaps}/a").json == created.json


def test_a_name_can_be_generated(http, configmaps):
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "job-"}}

    first, second = http.post(configmaps, body), http.post(configmaps, body)

    names = {answer.json["metadata"]["name"] for answer in (first, second)}
    assert len(names) == 2
    assert all(re.fullmatch("job-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


def test_kind_and_version_may_be_left_out_of_a_built_in_object(http, configmaps):
    assert http.post(configmaps, {"metadata": {"name": "bare"}}).status == 201


def test_creating_it_again_says_that_it_exists(http, configmaps):
    http.post(configmaps, configmap("a"))

    again = http.post(configmaps, configmap("a"))

    assert (again.status, again.reason) == (409, "AlreadyExists")
    assert again.message == 'configmaps "a" already exists'
    assert again.json["details"] == {"name": "a", "kind": "configmaps"}


def test_missing_objects_are_not_found(http, configmaps):
    missing = http.get(f"{configmaps}/nope")

    assert (missing.status, missing.reason) == (404, "NotFound")
    assert missing.message == 'configmaps "nope" not found'


def test_a_dry_run_answers_as_if_and_stores_nothing(http, configmaps):
    answer = http.post(configmaps, configmap("ghost"), query={"dryRun": "All"})

    assert answer.status == 201
    assert answer.json["metadata"]["uid"]
    assert "resourceVersion" not in answer.json["metadata"]
    assert http.get(f"{configmaps}/ghost").status == 404


def test_an_update_replaces_the_object(http, configmaps):
    created = http.post(configmaps, configmap("a", k="v")).json

    updated = http.put(f"{configmaps}/a", {**created, "data": {"k": "w"}})

    assert updated.status == 200
    assert updated.json["data"] == {"k": "w"}
    assert int(updated.json["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    assert updated.json["metadata"]["uid"] == created["metadata"]["uid"]


def test_an_update_without_changes_keeps_the_revision(http, configmaps):
    created = http.post(configmaps, configmap("a", k="v")).json

    assert http.put(f"{configmaps}/a", created).json["metadata"] == created["metadata"]


def test_an_update_from_an_old_revision_conflicts(http, configmaps):
    created = http.post(configmaps, configmap("a", k="v")).json
    http.put(f"{configmaps}/a", {**created, "data": {"k": "w"}})

    late = http.put(f"{configmaps}/a", {**created, "data": {"k": "x"}})

    assert (late.status, late.reason) == (409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version" in late.message


def test_an_update_without_resource_version_is_accepted_for_built_in_kinds(http, configmaps):
    http.post(configmaps, configmap("a", k="v"))

    assert http.put(f"{configmaps}/a", configmap("a", k="w")).json["data"] == {"k": "w"}


def test_an_update_of_what_does_not_exist_is_not_found(http, configmaps):
    assert http.put(f"{configmaps}/nope", configmap("nope")).status == 404


def test_an_update_names_the_object_of_its_url(http, configmaps):
    http.post(configmaps, configmap("a"))

    answer = http.put(f"{configmaps}/a", configmap("b"))

    assert answer.status == 400
    assert answer.message == "the name of the object (b) does not match the name on the URL (a)"


def test_an_update_with_another_uid_conflicts(http, configmaps):
    http.post(configmaps, configmap("a"))
    body = configmap("a")
    body["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555"

    answer = http.put(f"{configmaps}/a", body)

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition" in answer.message


def test_a_namespace_other_than_the_urls_is_refused(http, configmaps):
    body = configmap("a")
    body["metadata"]["namespace"] = "elsewhere"

    answer = http.post(configmaps, body)

    assert answer.status == 400
    assert answer.message == "the namespace of the provided object does not match the namespace sent on the request"


def test_a_namespace_that_does_not_exist_takes_no_objects(http, fresh):
    answer = http.post(f"/api/v1/namespaces/{fresh('void')}/configmaps", configmap("a"))

    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message.startswith('namespaces "void-')


def test_an_object_without_a_name_is_invalid(http, configmaps):
    answer = http.post(configmaps, {"metadata": {}})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [
        {
            "reason": "FieldValueRequired",
            "message": "Required value: name or generateName is required",
            "field": "metadata.name",
        }
    ]


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"name": "Upper"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"name": "a", "labels": {"-bad": "x"}}, "metadata.labels"),
        ({"name": "a", "labels": {"ok": "not valid!"}}, "metadata.labels"),
        ({"name": "a", "labels": {"ok": "x" * 64}}, "metadata.labels"),
        ({"name": "a", "annotations": {"a b": "x"}}, "metadata.annotations"),
        ({"name": "a", "finalizers": ["nodomain"]}, "metadata.finalizers[0]"),
        (
            {"name": "a", "ownerReferences": [{"kind": "A", "name": "b", "uid": "c"}]},
            "metadata.ownerReferences.apiVersion",
        ),
    ],
    ids=["upper case", "long name", "label key", "label value", "long label", "annotation key", "finalizer", "owner"],
)
def test_bad_metadata_is_invalid_and_named(http, configmaps, metadata, field):
    answer = http.post(configmaps, {"metadata": metadata})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert [cause["field"] for cause in answer.causes] == [field]


def test_a_revision_on_an_object_to_be_created_is_refused(http, configmaps):
    body = configmap("a")
    body["metadata"]["resourceVersion"] = "5"

    answer = http.post(configmaps, body)

    assert answer.status == 500
    assert answer.message == "resourceVersion should not be set on objects to be created"


def test_unknown_and_duplicate_fields_are_refused_when_strict(http, configmaps):
    body = b'{"metadata":{"name":"x","zz":1},"foo":1,"data":{"a":"b","a":"c"}}'

    answer = http.post(configmaps, body, query={"fieldValidation": "Strict"})

    assert answer.status == 400
    assert answer.message.endswith(
        'strict decoding error: unknown field "metadata.zz", unknown field "foo", duplicate field "data.a"'
    )


def test_unknown_fields_are_warned_about_and_dropped_otherwise(http, configmaps):
    answer = http.post(configmaps, {"metadata": {"name": "x"}, "foo": 1})

    assert answer.status == 201
    assert answer.warnings == ['299 - "unknown field \\"foo\\""']
    assert "foo" not in answer.json


def test_unknown_fields_are_dropped_in_silence_when_asked(http, configmaps):
    answer = http.post(configmaps, {"metadata": {"name": "x"}, "foo": 1}, query={"fieldValidation": "Ignore"})

    assert (answer.status, answer.warnings) == (201, [])


def test_objects_can_be_sent_as_yaml(http, configmaps):
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plain\ndata:\n  when: '2020-01-01'\n"

    assert http.post(configmaps, body, content_type="application/yaml").json["data"] == {"when": "2020-01-01"}


def test_an_immutable_configmap_keeps_its_data(http, configmaps):
    created = http.post(configmaps, {**configmap("a", k="v"), "immutable": True}).json

    answer = http.put(f"{configmaps}/a", {**created, "data": {"k": "w"}})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes[0]["field"] == "data"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_an_unknown_dry_run_directive_is_refused(http, configmaps, method):
    http.post(configmaps, configmap("a"))
    path = configmaps if method == "POST" else f"{configmaps}/a"
    body = None if method == "DELETE" else configmap("a")
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"

    answer = http.request(method, path, body, content_type=kind, query={"dryRun": "Some"})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes[0]["field"] == "dryRun"


def test_revision_zero_is_no_revision(http, configmaps):
    created = http.post(configmaps, {"metadata": {"name": "a", "resourceVersion": "0"}})
    updated = http.put(f"{configmaps}/a", {"metadata": {"name": "a", "resourceVersion": "0"}, "data": {"k": "v"}})

    assert (created.status, updated.status) == (201, 200)


def test_a_revision_that_is_no_number_fails_an_update_and_is_ignored_in_a_create(http, configmaps):
    created = http.post(configmaps, {"metadata": {"name": "a", "resourceVersion": "x"}})
    updated = http.put(f"{configmaps}/a", {"metadata": {"name": "a", "resourceVersion": "x"}})

    assert created.status == 201
    assert (updated.status, updated.message) == (500, 'strconv.ParseUint: parsing "x": invalid syntax')


def test_a_self_link_is_not_kept(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a"}})

    answer = http.put(f"{configmaps}/a", {"metadata": {"name": "a", "selfLink": "/somewhere"}})

    assert (answer.status, "selfLink" in answer.json["metadata"]) == (200, False)


def test_a_moment_of_the_first_years_is_written_as_it_is_read(http, namespace):
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    spec = {"acquireTime": "0001-01-01T00:00:02.000000Z", "renewTime": "0987-06-05T04:03:02.000001Z"}
    created = http.post(leases, {"metadata": {"name": "a"}, "spec": {"holderIdentity": "h", **spec}})

    updated = http.put(f"{leases}/a", created.json)

    assert (created.status, updated.status) == (201, 200)
    assert [created.json["spec"][name] for name in spec] == list(spec.values())
