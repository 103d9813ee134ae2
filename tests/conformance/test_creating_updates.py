"""Updates that create: some built-in kinds can be created by a PUT."""

from __future__ import annotations

import pytest

RBAC = "/apis/rbac.authorization.k8s.io/v1"
LEASES = {"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["leases"]}


@pytest.fixture
def leases(namespace) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def lease(name: str, **metadata: object) -> dict:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, **metadata},
        "spec": {"holderIdentity": "me"},
    }


def test_an_update_creates_a_missing_lease(http, leases):
    created = http.put(f"{leases}/a", lease("a"), query={"fieldManager": "me"})

    assert created.status == 201
    assert created.json["spec"] == {"holderIdentity": "me"}
    assert created.json["metadata"]["managedFields"][0]["manager"] == "me"
    assert http.get(f"{leases}/a").json == created.json


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/namespaces/{}/services/a", {"spec": {"ports": [{"port": 80}]}}),
        (RBAC + "/namespaces/{}/roles/a", {"rules": []}),
        (
            RBAC + "/namespaces/{}/rolebindings/a",
            {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"}},
        ),
    ],
    ids=["Service", "Role", "RoleBinding"],
)
def test_an_update_creates_objects_of_other_kinds(http, namespace, path, body):
    created = http.put(path.format(namespace), {**body, "metadata": {"name": "a"}})

    assert created.status == 201, created.content


def test_an_update_creates_an_event(http, namespace):
    event = {"metadata": {"name": "a"}, "involvedObject": {"namespace": namespace, "name": "b"}}

    assert http.put(f"/api/v1/namespaces/{namespace}/events/a", event).status == 201


@pytest.mark.parametrize(
    "path",
    ["/api/v1/namespaces/{}/secrets/a", "/api/v1/namespaces/{}/serviceaccounts/a", "/api/v1/nodes/nobody"],
)
def test_most_kinds_are_created_by_post_alone(http, namespace, path):
    name = path.rpartition("/")[2]

    assert http.put(path.format(namespace), {"metadata": {"name": name}}).status == 404


@pytest.mark.parametrize("revision", ["0", "5"])
def test_a_revision_that_never_was_does_no_harm(http, leases, revision):
    assert http.put(f"{leases}/a", lease("a", resourceVersion=revision)).status == 201


def test_a_revision_that_is_no_number_is_an_error(http, leases):
    answer = http.put(f"{leases}/a", lease("a", resourceVersion="newest"))

    assert answer.status == 500
    assert answer.message == 'strconv.ParseUint: parsing "newest": invalid syntax'


def test_a_uid_requires_an_existing_object(http, leases, namespace):
    answer = http.put(f"{leases}/a", lease("a", uid="1234"))

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on leases.coordination.k8s.io "a": StorageError: invalid object, Code: 4, '
        f"Key: /registry/leases/{namespace}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        "UID in precondition: 1234, UID in object meta: "
    )


def test_a_dry_run_creates_nothing(http, leases):
    assert http.put(f"{leases}/a", lease("a"), query={"dryRun": "All"}).status == 201
    assert http.get(f"{leases}/a").status == 404


def test_an_object_created_by_an_update_is_validated_as_new(http, leases):
    answer = http.put(f"{leases}/A_A", lease("A_A"))

    assert (answer.status, [cause["field"] for cause in answer.causes]) == (422, ["metadata.name"])


def test_nothing_is_created_in_a_missing_namespace(http):
    answer = http.put("/apis/coordination.k8s.io/v1/namespaces/nowhere/leases/a", lease("a"))

    assert (answer.status, answer.message) == (404, 'namespaces "nowhere" not found')


def test_a_patch_creates_nothing(http, leases):
    assert http.patch(f"{leases}/a", {"spec": {"holderIdentity": "me"}}).status == 404


def test_webhooks_see_a_create(http, hooks, leases, register):
    register("Validating", {}, {"name": "two.example.com", "rules": [LEASES]})
    register.settle()

    http.put(f"{leases}/a", lease("a"))

    (told,) = (asked for asked in hooks.requests if asked["resource"]["resource"] == "leases")
    assert (told["operation"], told["options"]["kind"], told["oldObject"]) == ("CREATE", "CreateOptions", None)
