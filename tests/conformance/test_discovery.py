"""Discovery, OpenAPI and version: what clients ask first."""

from __future__ import annotations

import pytest

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_the_core_api_has_one_version(http):
    answer = http.get("/api").json

    assert (answer["kind"], answer["versions"]) == ("APIVersions", ["v1"])


def test_groups_are_listed_with_their_preferred_version(http):
    groups = {group["name"]: group for group in http.get("/apis").json["groups"]}

    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert {"policy", "coordination.k8s.io", "rbac.authorization.k8s.io", "apiextensions.k8s.io"} <= groups.keys()


def test_a_group_lists_its_versions(http):
    answer = http.get("/apis/policy").json

    assert (answer["kind"], answer["name"]) == ("APIGroup", "policy")
    assert answer["versions"] == [{"groupVersion": "policy/v1", "version": "v1"}]


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        ("/api/v1", "nodes", {"kind": "Node", "namespaced": False, "shortNames": ["no"], "singularName": "node"}),
        ("/api/v1", "pods", {"kind": "Pod", "namespaced": True, "shortNames": ["po"], "categories": ["all"]}),
        ("/api/v1", "nodes/status", {"kind": "Node", "verbs": ["get", "patch", "update"]}),
        ("/api/v1", "pods/eviction", {"kind": "Eviction", "group": "policy", "version": "v1", "verbs": ["create"]}),
        ("/apis/apps/v1", "deployments/scale", {"kind": "Scale", "group": "autoscaling", "version": "v1"}),
        ("/apis/policy/v1", "poddisruptionbudgets", {"kind": "PodDisruptionBudget", "shortNames": ["pdb"]}),
        ("/apis/coordination.k8s.io/v1", "leases", {"kind": "Lease", "namespaced": True}),
        ("/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews", {"verbs": ["create"], "namespaced": False}),
    ],
)
def test_resources_are_described(http, path, name, expected):
    resources = {resource["name"]: resource for resource in http.get(path).json["resources"]}

    assert expected.items() <= resources[name].items()


def test_every_object_can_be_read_and_written(http):
    resources = {resource["name"]: resource for resource in http.get("/api/v1").json["resources"]}

    assert sorted(resources["configmaps"]["verbs"]) == [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ]


def test_namespaces_are_deleted_one_by_one(http):
    resources = {resource["name"]: resource for resource in http.get("/api/v1").json["resources"]}
    (core,) = http.get("/api", accept=AGGREGATED).json["items"][0]["versions"]
    aggregated = {resource["resource"]: resource for resource in core["resources"]}

    assert sorted(resources["namespaces"]["verbs"]) == sorted(aggregated["namespaces"]["verbs"])
    assert "deletecollection" not in resources["namespaces"]["verbs"]


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_discovery_lists_everything_at_once(http, path):
    answer = http.get(path, accept=AGGREGATED)

    assert answer.json["kind"] == "APIGroupDiscoveryList"
    assert answer.headers["Content-Type"] == AGGREGATED
    again = http.get(path, accept=AGGREGATED, headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status, again.content) == (304, b"")


def test_aggregated_discovery_knows_subresources(http):
    core = http.get("/api", accept=AGGREGATED).json["items"][0]["versions"][0]["resources"]
    pods = next(resource for resource in core if resource["resource"] == "pods")

    assert {"binding", "eviction", "status"} <= {sub["subresource"] for sub in pods["subresources"]}
    assert pods["scope"] == "Namespaced"


def test_clients_fall_back_to_the_plain_form(http):
    answer = http.get(
        "/apis", accept=f"application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,{'application/json'}"
    )

    assert answer.json["kind"] == "APIGroupList"


def test_openapi_has_a_document_per_group_version(http):
    paths = http.get("/openapi/v3").json["paths"]

    document = http.get(paths["apis/apps/v1"]["serverRelativeURL"]).json
    schemas = document["components"]["schemas"]
    assert schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"] == [
        {"group": "apps", "kind": "Deployment", "version": "v1"}
    ]
    assert schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["replicas"]["format"] == "int32"


def test_openapi_lists_the_parameters_of_a_patch(http):
    document = http.get("/openapi/v3/api/v1").json

    operation = document["paths"]["/api/v1/nodes/{name}"]["patch"]
    assert {"dryRun", "fieldValidation", "fieldManager", "force"} <= {p["name"] for p in operation["parameters"]}
    assert operation["x-kubernetes-group-version-kind"] == {"group": "", "kind": "Node", "version": "v1"}


def test_openapi_marks_merge_keys(http):
    schemas = http.get("/openapi/v3/api/v1").json["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]

    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-type"] == "map"


def test_the_version_is_a_kubernetes_version(http):
    version = http.get("/version").json

    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.")
