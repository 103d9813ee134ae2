"""JSON, merge and strategic merge patches."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import APPLY, JSON_PATCH, MERGE, STRATEGIC


@pytest.fixture
def target(http, configmaps) -> str:
    body = {"metadata": {"name": "a", "labels": {"x": "1", "y": "2"}}, "data": {"k": "v", "l": "w"}}
    assert http.post(configmaps, body).status == 201
    return f"{configmaps}/a"


@pytest.fixture
def pod(http, namespace) -> str:
    path = f"/api/v1/namespaces/{namespace}/pods"
    spec = {
        "containers": [
            {"name": "one", "image": "i:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]},
            {"name": "two", "image": "i:1"},
        ],
        "tolerations": [{"key": "k", "operator": "Exists"}],
    }
    assert http.post(path, {"metadata": {"name": "p", "finalizers": ["a.b/c"]}, "spec": spec}).status == 201
    yield f"{path}/p"
    http.patch(f"{path}/p", {"metadata": {"finalizers": None}})
    http.delete(f"{path}/p", {"gracePeriodSeconds": 0})


def test_a_merge_patch_adds_changes_and_removes(http, target):
    answer = http.patch(target, {"metadata": {"labels": {"x": None, "z": "3"}}, "data": {"k": "u"}}, MERGE)

    assert answer.status == 200
    assert answer.json["metadata"]["labels"] == {"y": "2", "z": "3"}
    assert answer.json["data"] == {"k": "u", "l": "w"}


def test_a_merge_patch_without_changes_keeps_the_revision(http, target):
    before = http.get(target).json["metadata"]["resourceVersion"]

    assert http.patch(target, {"data": {"k": "v"}}).json["metadata"]["resourceVersion"] == before


def test_a_revision_in_a_patch_is_a_precondition(http, target):
    stale = http.get(target).json["metadata"]["resourceVersion"]
    http.patch(target, {"data": {"k": "u"}})

    answer = http.patch(target, {"metadata": {"resourceVersion": stale}, "data": {"k": "t"}})

    assert (answer.status, answer.reason) == (409, "Conflict")


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
def test_a_patch_cannot_change_the_uid(http, target, kind):
    answer = http.patch(target, {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}}, kind)

    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.uid")


def test_an_apply_that_names_a_uid_does_not_create(http, configmaps):
    metadata = {"name": "ghost", "uid": "11111111-2222-3333-4444-555555555555"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

    answer = http.patch(f"{configmaps}/ghost", body, APPLY, query={"fieldManager": "m"})

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "uid mismatch" in answer.message


def test_a_patch_cannot_rename(http, target):
    answer = http.patch(target, {"metadata": {"name": "b"}})

    assert answer.status == 400
    assert answer.message == "the name of the object (b) does not match the name on the URL (a)"


def test_a_patch_of_what_does_not_exist_is_not_found(http, configmaps):
    assert http.patch(f"{configmaps}/nope", {}).status == 404


def test_a_dry_run_patch_changes_nothing(http, target):
    answer = http.patch(target, {"data": {"k": "u"}}, query={"dryRun": "All"})

    assert answer.json["data"]["k"] == "u"
    assert http.get(target).json["data"]["k"] == "v"


def test_a_json_patch_runs_its_operations_in_order(http, target):
    operations = [
        {"op": "test", "path": "/data/k", "value": "v"},
        {"op": "add", "path": "/data/n", "value": "new"},
        {"op": "move", "from": "/data/l", "path": "/data/m"},
        {"op": "copy", "from": "/data/n", "path": "/data/o"},
        {"op": "remove", "path": "/metadata/labels/x"},
        {"op": "replace", "path": "/data/k", "value": "u"},
        {"op": "add", "path": "/metadata/labels/a~1b", "value": "slash"},
    ]

    answer = http.patch(target, operations, JSON_PATCH)

    assert answer.status == 200
    assert answer.json["data"] == {"k": "u", "m": "w", "n": "new", "o": "new"}
    assert answer.json["metadata"]["labels"] == {"y": "2", "a/b": "slash"}


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "test", "path": "/data/k", "value": "other"}],
        [{"op": "remove", "path": "/data/nope"}],
        [{"op": "add", "path": "/nope/deep", "value": 1}],
        [{"op": "dance", "path": "/data/k"}],
    ],
    ids=["test", "remove", "add", "unknown"],
)
def test_a_json_patch_that_cannot_be_applied_is_unprocessable(http, target, operations):
    answer = http.patch(target, operations, JSON_PATCH)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert http.get(target).json["data"] == {"k": "v", "l": "w"}


def test_replacing_a_missing_key_adds_it(http, target):
    answer = http.patch(target, [{"op": "replace", "path": "/data/nope", "value": "x"}], JSON_PATCH)

    assert answer.json["data"] == {"k": "v", "l": "w", "nope": "x"}


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"{", MERGE), (b"[]", MERGE), (b'"x"', MERGE), (b"{}", JSON_PATCH), (b"[", JSON_PATCH), (b"[]", STRATEGIC)],
    ids=["broken merge", "list as merge", "string as merge", "object as json", "broken json", "list as strategic"],
)
def test_a_malformed_patch_is_a_bad_request(http, target, body, kind):
    assert http.patch(target, body, kind).status == 400


def test_a_patch_to_a_wrong_type_is_unprocessable(http, target):
    answer = http.patch(target, {"data": {"k": 1}})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes[0]["field"] == "patch"
    assert "cannot unmarshal number" in answer.message


def test_an_unknown_field_in_a_patch_is_refused_when_strict(http, target):
    answer = http.patch(target, {"foo": 1}, query={"fieldValidation": "Strict"})

    assert answer.status == 422
    assert 'strict decoding error: unknown field "foo"' in answer.message


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/strategic+json"])
def test_a_patch_of_unknown_format_is_unsupported(http, target, kind):
    answer = http.patch(target, {}, kind)

    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


def test_force_is_for_apply_alone(http, target):
    answer = http.patch(target, {}, query={"force": "true"})

    assert answer.status == 422
    assert answer.causes[0]["field"] == "force"


def test_apply_wants_a_manager(http, target):
    answer = http.patch(target, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, APPLY)

    assert answer.status == 422
    assert answer.causes[0]["field"] == "fieldManager"


def test_a_strategic_patch_merges_lists_by_their_key(http, pod):
    patch = {"spec": {"containers": [{"name": "two", "image": "i:2"}]}}

    answer = http.patch(pod, patch, STRATEGIC)

    assert answer.status == 200
    assert [(c["name"], c["image"]) for c in answer.json["spec"]["containers"]] == [("one", "i:1"), ("two", "i:2")]


def test_a_merge_patch_replaces_lists(http, pod):
    answer = http.patch(pod, {"metadata": {"finalizers": ["d.e/f"]}})

    assert answer.json["metadata"]["finalizers"] == ["d.e/f"]


def test_a_strategic_patch_joins_lists_of_plain_values(http, pod):
    answer = http.patch(pod, {"metadata": {"finalizers": ["d.e/f"]}}, STRATEGIC)

    assert sorted(answer.json["metadata"]["finalizers"]) == ["a.b/c", "d.e/f"]


def test_a_strategic_patch_can_delete_from_a_list_of_plain_values(http, pod):
    answer = http.patch(pod, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}}, STRATEGIC)

    assert "finalizers" not in answer.json["metadata"]


def test_a_strategic_patch_can_replace_and_delete(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "s", "labels": {"x": "1"}}, "data": {"k": "v", "l": "w"}})

    replaced = http.patch(f"{configmaps}/s", {"data": {"$patch": "replace", "m": "n"}}, STRATEGIC)
    deleted = http.patch(f"{configmaps}/s", {"data": {"$patch": "delete"}}, STRATEGIC)

    assert replaced.json["data"] == {"m": "n"}
    assert "data" not in deleted.json


def test_conditions_merge_by_type_in_a_strategic_patch_of_status(http, pod):
    ready = {"type": "Ready", "status": "True"}
    http.patch(f"{pod}/status", {"status": {"conditions": [ready]}}, STRATEGIC)

    other = {"type": "Other", "status": "False"}
    answer = http.patch(f"{pod}/status", {"status": {"conditions": [other]}}, STRATEGIC)

    assert {c["type"] for c in answer.json["status"]["conditions"]} == {"Ready", "Other"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "Secret"}, "converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        ({"apiVersion": "v2"}, 'no kind "ConfigMap" is registered for version "v2" in scheme'),
        ({"kind": 5}, "cannot unmarshal number into Go struct field .kind of type string"),
        ({"apiVersion": 5}, "cannot unmarshal number into Go struct field .apiVersion of type string"),
    ],
    ids=["kind", "version", "kind of another type", "version of another type"],
)
def test_a_patch_cannot_change_the_kind_of_an_object(http, configmaps, change, why):
    http.post(configmaps, {"metadata": {"name": "a"}})

    answer = http.patch(f"{configmaps}/a", change)

    assert (answer.status, answer.causes[0]["field"]) == (422, "patch")
    assert why in answer.message


def test_a_patch_that_removes_the_name_is_refused(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a"}})

    answer = http.patch(f"{configmaps}/a", [{"op": "replace", "path": "", "value": {}}], JSON_PATCH)

    assert answer.status == 400
    assert answer.message == "the name of the object (a based on URL) was undeterminable: name must be provided"


def test_copies_in_a_json_patch_are_bounded(http, make_gadget, gadgets, namespace):
    assert make_gadget("v1", "small").status == 201
    path = f"/apis/{gadgets}/v1/namespaces/{namespace}/gadgets/small"
    first = {"op": "add", "path": "/spec", "value": {"a": "x" * 100}}
    copies = [{"op": "copy", "from": "/spec", "path": f"/spec/{number}"} for number in range(18)]

    within, beyond = (http.patch(path, [first, *copies[:number]], JSON_PATCH) for number in (4, 18))

    assert within.status == 200
    assert within.json["spec"]["3"]["2"]["1"]["0"] == {"a": "x" * 100}
    assert (beyond.status, beyond.reason) == (422, "Invalid")


def test_an_object_above_the_limit_of_etcd_is_refused(http, make_gadget, gadgets, namespace):
    assert make_gadget("v1", "big").status == 201
    path = f"/apis/{gadgets}/v1/namespaces/{namespace}/gadgets/big"

    answer = http.patch(path, {"spec": "x" * 1_600_000})

    assert (answer.status, answer.message) == (500, "etcdserver: request is too large")
    assert "spec" not in http.get(path).json
