"""A declared service works like a built-in one, once its permissions are granted."""

import re
import subprocess

import pytest
from tests.builders.pools_env import PROGRAM
from tests.builders.profiles import service_body
from tests.builders.profiles_env import ProfilesEnv
from tests.builders.rule_webhooks import VALIDATING, discard

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.plan.brake import parse_limit
from nodeyard.runtime.rbac import aggregation_label
from nodeyard.testing import third_party_crds
from nodeyard.testing.operators import LOCAL_WEBHOOKS
from nodeyard.testing.rest import RestError
from nodeyard.testing.session import MERGE

GROUP, VERSION = "storage.example.dev", "v1"
KEY = "storage.example.dev/storage-profile"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
SERVICES = f"/apis/{names.SERVICE_API_VERSION}/{names.SERVICE_PLURAL}"


def definition(kind, plural, scope="Namespaced"):
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
        "spec": {"group": GROUP, "scope": scope, "names": named, "versions": [version]},
    }


@pytest.fixture(scope="module")
def storage_kinds(api):
    kinds = [definition("StorageProfile", "storageprofiles"), definition("StorageAgent", "storageagents")]
    kinds.append(definition("WideProfile", "wideprofiles", scope="Cluster"))
    third_party_crds.install(api.rest, [*PROFILES.definitions(), *kinds])


@pytest.fixture
def profiles_env(api, storage_kinds):
    profiles_env = ProfilesEnv(api.rest)
    yield profiles_env
    profiles_env.close()


def declaration(**spec):
    return service_body(
        "storage",
        annotationKey=KEY,
        profile={"apiVersion": f"{GROUP}/{VERSION}", "kind": "StorageProfile"},
        object={"apiVersion": f"{GROUP}/{VERSION}", "kind": "StorageAgent"},
        nodeField="nodeName",
        profileField="profileName",
        configField="config",
        **spec,
    )


@pytest.fixture
def declared(api, storage_kinds):
    """Declare the service; delete it after the test."""
    api.rest.create(declaration())
    yield
    api.rest.call("DELETE", f"{SERVICES}/storage")


def rights():
    """Grant the operator permissions on the declared kinds."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "storage-for-nodeyard", "labels": {aggregation_label(PROFILES): "true"}},
        "rules": [
            {"apiGroups": [GROUP], "resources": ["storageprofiles", "storageagents", "wideprofiles"], "verbs": ["*"]}
        ],
    }


@pytest.fixture
def permitted(api):
    api.rest.create(rights())
    yield
    api.rest.call("DELETE", f"{ROLES}/storage-for-nodeyard")


@pytest.fixture
def webhooks(api):
    """Request it before `operator`: its cleanup runs after the operators have stopped."""
    yield LOCAL_WEBHOOKS
    discard(api.rest, f"{VALIDATING}/nodeyard-{names.CAPABILITY}")


def storage_profile(namespace, config, name="fast"):
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "StorageProfile",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"config": config},
    }


def test_a_declared_service_is_like_a_built_in_one_and_says_which_right_it_lacks(api, profiles_env, declared, operator):
    operator(PROFILES)
    profiles_env.node("n0", role="", annotations={KEY: "fast"})
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{profiles_env.namespace}"
    api.rest.create(storage_profile(profiles_env.namespace, "[disk]\nkind = nvme\n"))

    def fault():
        return profiles_env.condition(names.NODE_KIND, "n0", "ProfilesReady")

    def has_our_fields():
        told = fault()
        named = [each for each in ("storageprofiles", "storageagents") if each in told.get("message", "")]
        return told.get("reason") == "Forbidden" and named

    profiles_env.wait_until(has_our_fields, "the missing right is told of, with what it is for")

    api.rest.create(rights())
    try:
        agent = f"{path}/storageagents/n0"
        profiles_env.wait_until(lambda: api.rest.status(agent) == 200, "the object is made", timeout=90)
        spec = api.rest.get(agent)["spec"]
        assert (spec["nodeName"], spec["profileName"]) == ("n0", "fast")
        assert profiles_env.configuration("n0", "storage")["data"]["02-storage-profile.conf"] == "[disk]\nkind = nvme\n"
        assert profiles_env.choice("n0", "storage")["source"] == "Node"
    finally:
        api.rest.call("DELETE", f"{ROLES}/storage-for-nodeyard")


def test_a_bulk_removal_by_a_selector_of_a_declared_service_is_approved_on_its_declaration(
    api, profiles_env, declared, permitted, operator
):
    operator(PROFILES, limit=parse_limit("1,0%"))
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{profiles_env.namespace}"
    profile = storage_profile(profiles_env.namespace, "[disk]\nkind = nvme\n")
    api.rest.create({**profile, "spec": {**profile["spec"], "nodeSelector": {"rack": "r1"}}})
    agents = [
        f"{path}/storageagents/{profiles_env.node(name, role='', labels={'rack': 'r1'})}" for name in ("n0", "n1")
    ]
    profiles_env.wait_until(lambda: all(map(api.rest.exists, agents)), "both have an agent", timeout=90)

    api.rest.call("PATCH", f"{path}/storageprofiles/fast", {"spec": {"nodeSelector": None}}, content_type=MERGE)

    def held():
        told = profiles_env.condition(names.NODE_KIND, "n0", "RolloutDone")
        return re.findall(r"`nodeyard approve (\w+)` to proceed", told.get("message", ""))

    (id,) = profiles_env.wait_until(held, "it is held")
    assert all(map(api.rest.exists, agents))

    def awaits_role():
        conditions = api.rest.get(f"{SERVICES}/storage")["status"]["conditions"]
        return any(each["type"] == "Held" and id in each["message"] for each in conditions)

    profiles_env.wait_until(awaits_role, "the declaration is Held")
    command = [*PROGRAM, "approve", id, "--kubeconfig", str(api.kubeconfig)]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    profiles_env.wait_until(lambda: not any(map(api.rest.exists, agents)), "both agents are gone")
    profiles_env.wait_until(lambda: not awaits_role(), "nothing of the declaration is held any more")
    profiles_env.wait_until(
        lambda: "nodeyard.dev/approve" not in api.rest.get(f"{SERVICES}/storage")["metadata"]["annotations"],
        "the approval ends with the removal",
        60,
    )


def test_the_first_report_of_a_service_requeues_all_its_nodes(api, profiles_env, declared, permitted, operator):
    operator(PROFILES)
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{profiles_env.namespace}"
    api.rest.create(storage_profile(profiles_env.namespace, "[disk]\nkind = nvme\n"))
    nodes = [profiles_env.node(f"n{number}", role="", annotations={KEY: "fast"}) for number in range(8)]

    def rollout():
        return [profiles_env.condition(names.NODE_KIND, node, "RolloutDone").get("reason") for node in nodes]

    profiles_env.wait_until(lambda: rollout() == ["ProgressIgnored"] * 8, "nobody waits for reports", timeout=90)
    asked = api.rest.get(f"{path}/storageagents/n0")["metadata"]["annotations"][names.HASH]
    body = {"status": {"hash": {names.REPORTED_HASH: asked}, "conditions": [{"type": "Ready", "status": "True"}]}}
    api.rest.call("PATCH", f"{path}/storageagents/n0/status", body, content_type=MERGE)

    profiles_env.wait_until(
        lambda: "ProgressIgnored" not in rollout(), "all nodes have heard that reports are waited for"
    )
    assert profiles_env.condition(names.NODE_KIND, "n1", "RolloutDone")["status"] == "False"


def refusal(api, method, path, body=None):
    """Return the denial of a dry run; empty if it is allowed."""
    try:
        api.rest.call(method, f"{path}?dryRun=All", body)
    except RestError as error:
        return str(error)
    return ""


def test_profiles_of_a_declared_service_are_checked_before_they_are_stored(
    api, profiles_env, declared, permitted, webhooks, operator
):
    operator(PROFILES, webhooks=webhooks)
    profiles = f"/apis/{GROUP}/{VERSION}/namespaces/{profiles_env.namespace}/storageprofiles"
    bad = storage_profile(profiles_env.namespace, "disks: {nvme0: fast}\n", "bad")

    profiles_env.wait_until(
        lambda: refusal(api, "POST", profiles, bad), "the server asks about the declared kind", timeout=90
    )
    told = refusal(api, "POST", profiles, bad)
    assert "profiles.profiles.nodeyard.dev" in told
    assert "StorageProfile/bad: spec.config, line 1" in told

    api.rest.create(storage_profile(profiles_env.namespace, "[disk]\nkind = nvme\n"))
    profiles_env.node("n0", role="", annotations={KEY: "fast"})
    profiles_env.wait_until(lambda: refusal(api, "DELETE", f"{profiles}/fast"), "a profile in use is kept")
    assert "StorageProfile fast is in use by 1 node (n0)" in refusal(api, "DELETE", f"{profiles}/fast")


def test_configuration_that_is_declared_to_be_text_is_not_read_as_ini(
    api, profiles_env, declared, permitted, webhooks, operator
):
    operator(PROFILES, webhooks=webhooks)
    profiles = f"/apis/{GROUP}/{VERSION}/namespaces/{profiles_env.namespace}/storageprofiles"
    text = "disks: {nvme0: fast}\n"
    plain = storage_profile(profiles_env.namespace, text)
    profiles_env.wait_until(
        lambda: refusal(api, "POST", profiles, plain), "the server asks about the declared kind", timeout=90
    )

    api.rest.call("PATCH", f"{SERVICES}/storage", {"spec": {"configFormat": "Text"}}, content_type=MERGE)

    profiles_env.wait_until(lambda: not refusal(api, "POST", profiles, plain), "the text is taken as it is")
    api.rest.create(plain)
    profiles_env.node("n0", role="", annotations={KEY: "fast"})
    agent = f"/apis/{GROUP}/{VERSION}/namespaces/{profiles_env.namespace}/storageagents/n0"
    profiles_env.wait_until(lambda: api.rest.status(agent) == 200, "the object is made", timeout=90)
    assert profiles_env.configuration("n0", "storage")["data"]["02-storage-profile.conf"] == text


def test_a_cluster_scoped_kind_is_reported_and_blocks_nothing_else(api, profiles_env, declared, permitted, operator):
    wide = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "WideProfile"}
    api.rest.create({**wide, "metadata": {"name": "everywhere"}, "spec": {"nodeSelector": {}}})
    api.rest.create(
        service_body(
            "wide", annotationKey=f"{GROUP}/wide-profile", profile=wide, object=None, nodeField=None, profileField=None
        )
    )
    try:
        operator(PROFILES)
        profiles_env.node("n0", role="", annotations={f"{GROUP}/wide-profile": "everywhere", KEY: "fast"})
        api.rest.create(storage_profile(profiles_env.namespace, "[disk]\nkind = nvme\n"))

        def fault():
            return profiles_env.condition(names.NODE_KIND, "n0", "ProfilesReady")

        profiles_env.wait_until(
            lambda: fault().get("reason") == "KindNotNamespaced", "the node tells of it", timeout=90
        )
        assert "WideProfile.storage.example.dev is cluster-scoped" in fault()["message"]

        def service():
            conditions = (api.rest.get(f"{SERVICES}/wide").get("status") or {}).get("conditions") or [{}]
            return conditions[0].get("message", "")

        profiles_env.wait_until(lambda: "is cluster-scoped" in service(), "the declaration tells of it")
        agent = f"/apis/{GROUP}/{VERSION}/namespaces/{profiles_env.namespace}/storageagents/n0"
        profiles_env.wait_until(lambda: api.rest.status(agent) == 200, "the other service goes on", timeout=90)
    finally:
        api.rest.call("DELETE", f"{SERVICES}/wide")
        api.rest.call("DELETE", f"/apis/{GROUP}/{VERSION}/wideprofiles/everywhere")
