"""Deletion: at once, held by finalizers, with grace, in collections."""

from __future__ import annotations

import pytest


def test_a_deleted_object_is_gone_and_the_answer_names_it(http, configmaps):
    uid = http.post(configmaps, {"metadata": {"name": "a"}}).json["metadata"]["uid"]

    answer = http.delete(f"{configmaps}/a")

    assert answer.status == 200
    assert answer.json["status"] == "Success"
    assert answer.json["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    assert http.get(f"{configmaps}/a").status == 404


def test_deleting_what_does_not_exist_is_not_found(http, configmaps):
    assert http.delete(f"{configmaps}/nope").status == 404


def test_a_finalizer_holds_a_deleted_object_until_it_is_removed(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a", "finalizers": ["x.y/z"]}})

    held = http.delete(f"{configmaps}/a")
    metadata = http.get(f"{configmaps}/a").json["metadata"]
    http.patch(f"{configmaps}/a", {"metadata": {"finalizers": None}})

    assert held.status == 200
    assert held.json["kind"] == "ConfigMap"
    assert metadata["deletionTimestamp"]
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert http.get(f"{configmaps}/a").status == 404


def test_removing_the_last_finalizer_returns_the_update_and_watchers_get_the_stored_object(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a", "finalizers": ["x.y/z"]}, "data": {"k": "v"}})
    held = http.delete(f"{configmaps}/a").json
    with http.watch(configmaps, query={"resourceVersion": held["metadata"]["resourceVersion"]}) as events:
        answer = http.patch(f"{configmaps}/a", {"metadata": {"finalizers": None}, "data": {"k": "w"}}).json
        last = next(events)

    assert "finalizers" not in answer["metadata"]
    assert answer["data"] == {"k": "w"}
    assert answer["metadata"]["resourceVersion"] == held["metadata"]["resourceVersion"]
    assert last["type"] == "DELETED"
    assert int(last["object"]["metadata"].pop("resourceVersion")) > int(held["metadata"].pop("resourceVersion"))
    assert last["object"] == held


def test_a_deleted_namespace_is_terminating_at_once(http, fresh):
    name = fresh("ns")
    namespaces, path = "/api/v1/namespaces", f"/api/v1/namespaces/{name}"
    http.post(namespaces, {"metadata": {"name": name}})
    made = http.post(f"{path}/configmaps", {"metadata": {"name": "a", "finalizers": ["x.y/z"]}}).json["metadata"]
    query = {"resourceVersion": made["resourceVersion"], "fieldSelector": f"status.phase=Active,metadata.name={name}"}
    with http.watch(namespaces, query=query) as events:
        http.delete(path)
        terminating = http.get(namespaces, query={"fieldSelector": "status.phase=Terminating"}).json["items"]
        left = next(events)

    assert name in [each["metadata"]["name"] for each in terminating]
    assert (left["type"], left["object"]["status"]["phase"]) == ("DELETED", "Active")
    http.patch(f"{path}/configmaps/a", {"metadata": {"finalizers": None}})


def test_deleting_a_held_object_again_changes_nothing(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a", "finalizers": ["x.y/z"]}})
    first = http.delete(f"{configmaps}/a").json["metadata"]

    assert http.delete(f"{configmaps}/a").json["metadata"] == first
    http.patch(f"{configmaps}/a", {"metadata": {"finalizers": None}})


def test_no_finalizer_can_be_added_once_deletion_has_begun(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a", "finalizers": ["x.y/z"]}})
    http.delete(f"{configmaps}/a")

    answer = http.patch(f"{configmaps}/a", {"metadata": {"finalizers": ["x.y/z", "new.one/here"]}})

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes[0]["field"] == "metadata.finalizers"
    http.patch(f"{configmaps}/a", {"metadata": {"finalizers": None}})


def test_the_deletion_timestamp_cannot_be_set_by_an_update(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a"}})

    answer = http.patch(f"{configmaps}/a", {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}})

    assert (answer.status, answer.causes[0]["field"]) == (422, "metadata.deletionTimestamp")


@pytest.mark.parametrize(
    ("preconditions", "words"),
    [
        ({"uid": "11111111-2222-3333-4444-555555555555"}, "the UID in the precondition"),
        ({"resourceVersion": "1"}, "the ResourceVersion in the precondition"),
    ],
    ids=["uid", "revision"],
)
def test_preconditions_guard_a_deletion(http, configmaps, preconditions, words):
    http.post(configmaps, {"metadata": {"name": "a"}})

    answer = http.delete(f"{configmaps}/a", {"preconditions": preconditions})

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert words in answer.message
    assert http.get(f"{configmaps}/a").status == 200


def test_a_dry_run_deletes_nothing(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a"}})

    assert http.delete(f"{configmaps}/a", query={"dryRun": "All"}).status == 200
    assert http.get(f"{configmaps}/a").status == 200


def test_an_unknown_propagation_policy_is_invalid(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a"}})

    answer = http.delete(f"{configmaps}/a", query={"propagationPolicy": "Sideways"})

    assert (answer.status, answer.causes[0]["field"]) == (422, "propagationPolicy")


def test_a_collection_is_deleted_by_selector(http, configmaps):
    for name, tier in (("a", "web"), ("b", "db"), ("c", "web")):
        http.post(configmaps, {"metadata": {"name": name, "labels": {"tier": tier}}})

    answer = http.delete(configmaps, query={"labelSelector": "tier=web"})

    assert answer.json["kind"] == "ConfigMapList"
    assert [item["metadata"]["name"] for item in answer.json["items"]] == ["a", "c"]
    left = [item["metadata"]["name"] for item in http.get(configmaps).json["items"]]
    assert left == ["b"]


def test_a_collection_is_deleted_page_by_page(http, configmaps):
    for name in ("a", "b", "c"):
        http.post(configmaps, {"metadata": {"name": name}})

    first = http.delete(configmaps, query={"limit": 1}).json
    left = [item["metadata"]["name"] for item in http.get(configmaps).json["items"]]
    second = http.delete(configmaps, query={"limit": 1, "continue": first["metadata"]["continue"]}).json

    assert ([item["metadata"]["name"] for item in first["items"]], left) == (["a"], ["b", "c"])
    assert first["metadata"]["remainingItemCount"] == 2
    assert [item["metadata"]["name"] for item in second["items"]] == ["b"]
    assert [item["metadata"]["name"] for item in http.get(configmaps).json["items"]] == ["c"]


def test_a_collection_is_not_deleted_from_a_place_that_means_nothing(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a"}})

    assert http.delete(configmaps, query={"continue": "nonsense"}).status == 400
    assert http.get(f"{configmaps}/a").status == 200


@pytest.mark.parametrize("seconds", [10**12, 2**63 - 1])
def test_an_excessive_grace_period_overflows(http, namespace, seconds):
    pods = f"/api/v1/namespaces/{namespace}/pods"
    http.post(pods, {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}})

    answer = http.delete(f"{pods}/p", {"gracePeriodSeconds": seconds})
    shortened = http.delete(f"{pods}/p", {"gracePeriodSeconds": 0})

    assert (answer.status, answer.json["metadata"]["deletionGracePeriodSeconds"]) == (200, seconds)
    assert answer.json["metadata"]["deletionTimestamp"] < "2320"
    assert shortened.status == 200
    assert http.get(f"{pods}/p").status == 404


def test_a_bound_pod_is_deleted_after_its_grace_period(http, namespace):
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"nodeName": "n", "terminationGracePeriodSeconds": 17, "containers": [{"name": "c", "image": "i"}]}
    http.post(pods, {"metadata": {"name": "p"}, "spec": spec})

    marked = http.delete(f"{pods}/p")
    shortened = http.delete(f"{pods}/p", {"gracePeriodSeconds": 5})
    ended = http.delete(f"{pods}/p", {"gracePeriodSeconds": 0})

    assert marked.json["metadata"]["deletionGracePeriodSeconds"] == 17
    assert shortened.json["metadata"]["deletionGracePeriodSeconds"] == 5
    assert ended.json["metadata"]["deletionGracePeriodSeconds"] == 0
    moments = [answer.json["metadata"]["deletionTimestamp"] for answer in (ended, shortened, marked)]
    assert moments == sorted(set(moments))
    assert [answer.json["metadata"]["generation"] for answer in (marked, ended)] == [2, 2]
    assert http.get(f"{pods}/p").status == 404


def test_a_pod_without_a_node_is_deleted_at_once(http, namespace):
    pods = f"/api/v1/namespaces/{namespace}/pods"
    http.post(pods, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})

    tried = http.delete(f"{pods}/p", query={"dryRun": "All"}).json["metadata"]
    gone = http.delete(f"{pods}/p").json["metadata"]

    for metadata in (tried, gone):
        assert (metadata["deletionGracePeriodSeconds"], metadata["generation"]) == (0, 2)
        assert metadata["deletionTimestamp"] >= metadata["creationTimestamp"]
    assert http.get(f"{pods}/p").status == 404


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"gracePeriodSeconds": "x"},
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
        (
            {"preconditions": "x"},
            "json: cannot unmarshal string into Go struct field DeleteOptions.preconditions of type v1.Preconditions",
        ),
        (
            {"dryRun": "All"},
            "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string",
        ),
        (
            {"kind": "ConfigMap", "apiVersion": "v1"},
            'no kind "ConfigMap" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
    ],
    ids=["grace", "preconditions", "dry run", "kind"],
)
def test_options_of_the_wrong_type_delete_nothing(http, configmaps, body, message):
    http.post(configmaps, {"metadata": {"name": "a"}})

    answer = http.delete(f"{configmaps}/a", body)

    assert (answer.status, answer.reason, answer.message) == (400, "BadRequest", message)
    assert http.get(f"{configmaps}/a").status == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [({"propagationPolicy": ""}, 422), ({"gracePeriodSeconds": ""}, 400), ({"gracePeriodSeconds": "1_0"}, 400)],
    ids=["empty policy", "empty grace", "grace"],
)
def test_options_in_the_query_are_checked_too(http, configmaps, query, status):
    http.post(configmaps, {"metadata": {"name": "a"}})

    assert http.delete(f"{configmaps}/a", query=query).status == status


def test_a_null_body_means_default_options(http, configmaps):
    http.post(configmaps, {"metadata": {"name": "a"}})

    assert http.delete(f"{configmaps}/a", b"null").status == 200
    assert http.get(f"{configmaps}/a").status == 404
