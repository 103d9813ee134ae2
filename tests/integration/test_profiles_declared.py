"""A service that people declare works like a built-in one, once its declarer has granted the rights."""

import pytest
from tests.builders.dataplanes import Dataplane
from tests.builders.profiles import service_body

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.runtime.rbac import aggregation_label
from nodeyard.testing import foreign

GROUP, VERSION = "storage.example.dev", "v1"
KEY = "storage.example.dev/storage-profile"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
SERVICES = f"/apis/{names.SERVICE_API_VERSION}/{names.SERVICE_PLURAL}"


def definition(kind, plural):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    named = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": named, "versions": [version]},
    }


@pytest.fixture(scope="module")
def storage_kinds(api):
    kinds = [definition("StorageProfile", "storageprofiles"), definition("StorageAgent", "storageagents")]
    foreign.install(api.rest, [*PROFILES.definitions(), *kinds])


@pytest.fixture
def plane(api, storage_kinds):
    plane = Dataplane(api.rest)
    yield plane
    plane.close()


@pytest.fixture
def declared(api, storage_kinds):
    """The service, declared; it goes with the test."""
    body = service_body(
        "storage",
        annotationKey=KEY,
        profile={"apiVersion": f"{GROUP}/{VERSION}", "kind": "StorageProfile"},
        object={"apiVersion": f"{GROUP}/{VERSION}", "kind": "StorageAgent"},
        nodeField="nodeName",
        profileField="profileName",
        configField="config",
    )
    api.rest.create(body)
    yield
    api.rest.call("DELETE", f"{SERVICES}/storage")


def test_a_declared_service_is_like_a_built_in_one_and_says_which_right_it_lacks(api, plane, declared, operator):
    operator(PROFILES)
    plane.node("n0", role="", annotations={KEY: "fast"})
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{plane.namespace}"
    profile = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "StorageProfile",
        "metadata": {"name": "fast", "namespace": plane.namespace},
        "spec": {"config": "[disk]\nkind = nvme\n"},
    }
    api.rest.create(profile)

    def fault():
        return plane.condition(names.NODE_KIND, "n0", "ProfilesReady")

    plane.until(lambda: fault().get("reason") == "MissingRight", "the missing right is told of")
    assert "storageprofiles" in fault()["message"] or "storageagents" in fault()["message"]

    rule = {"apiGroups": [GROUP], "resources": ["storageprofiles", "storageagents"], "verbs": ["*"]}
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "storage-for-nodeyard", "labels": {aggregation_label(PROFILES): "true"}},
        "rules": [rule],
    }
    api.rest.create(role)
    try:
        agent = f"{path}/storageagents/n0"
        plane.until(lambda: api.rest.status(agent) == 200, "the object is made", timeout=90)
        spec = api.rest.get(agent)["spec"]
        assert (spec["nodeName"], spec["profileName"]) == ("n0", "fast")
        assert plane.configuration("n0", "storage")["data"]["02-storage-profile.conf"] == "[disk]\nkind = nvme\n"
        assert plane.choice("n0", "storage")["source"] == "Node"
    finally:
        api.rest.call("DELETE", f"{ROLES}/storage-for-nodeyard")
