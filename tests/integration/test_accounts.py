"""Rights of each capability's ServiceAccount on both servers: requests that a stolen token must not make."""

from __future__ import annotations

import subprocess

import pytest
from tests.builders import rights
from tests.builders.pools_env import PROGRAM

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.manifests import account_policies
from nodeyard.capabilities.affinity.names import VALUES_SECRET
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.kube.names import APPROVE, NAMESPACE, WEBHOOK_CERTIFICATES
from nodeyard.runtime import rbac
from nodeyard.testing import third_party_crds
from nodeyard.testing.session import APPLY, MERGE, Session

GRANTED = "accounts-granted"
NAMES = [each.name for each in CAPABILITIES]
PLANNED = (SPARES, PROFILES)
RBAC = "/apis/rbac.authorization.k8s.io/v1"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def reading_secrets(verb):
    """The capabilities that may read the Secrets of the whole cluster by a verb."""
    return {
        capability.name
        for capability in CAPABILITIES
        for rule in capability.rbac
        if "secrets" in rule.resources and verb in rule.verbs and not (rule.names or rule.namespace or rule.grant)
    }


GETS_SECRETS, LISTS_SECRETS = reading_secrets("get"), reading_secrets("list")
ADMIN = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "accounts-stolen"},
    "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": GRANTED}],
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
}
POD = {"metadata": {"name": "stolen"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
FOREIGN = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "owls.accounts.example"},
    "spec": {
        "group": "accounts.example",
        "scope": "Cluster",
        "names": {"plural": "owls", "singular": "owl", "kind": "Owl", "listKind": "OwlList"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


def secret(type, name="stolen"):
    annotations = {"kubernetes.io/service-account.name": "default"}
    return {"metadata": {"name": name, "annotations": annotations}, "type": type}


def attacks(namespace):
    """Requests that each account tries in a namespace: method, path and body."""
    core = f"/api/v1/namespaces/{namespace}"
    return {
        "mint a token by a Secret": ("POST", f"{core}/secrets", secret("kubernetes.io/service-account-token")),
        "mint a token": ("POST", f"{core}/serviceaccounts/default/token", {"spec": {}}),
        "make an account": ("POST", f"{core}/serviceaccounts", {"metadata": {"name": "stolen"}}),
        "run a pod": ("POST", f"{core}/pods", POD),
        "run in a pod": ("POST", f"{core}/pods/any/exec", None),
        "call a kubelet": ("GET", "/api/v1/nodes/any/proxy/pods", None),
        "redirect a webhook of others": ("PATCH", f"{WEBHOOKS}/others", {"webhooks": []}),
        "bind a role": ("POST", f"{RBAC}/clusterrolebindings", ADMIN),
        "widen a role": ("PATCH", f"{RBAC}/clusterroles/edit", {"rules": []}),
        "change a definition of others": (
            "PATCH",
            f"{DEFINITIONS}/owls.accounts.example",
            {"metadata": {"labels": {}}},
        ),
        "delete a definition of others": ("DELETE", f"{DEFINITIONS}/owls.accounts.example", None),
        "switch off its own policy": (
            "DELETE",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/nodeyard-accounts-secrets",
            None,
        ),
    }


def elsewhere():
    """Requests that no account may make in a namespace without grants."""
    core = "/api/v1/namespaces/kube-system"
    config_map = {"metadata": {"name": "stolen"}}
    return {
        "read a Secret": ("GET", f"{core}/secrets/any", None),
        "write a Secret": ("POST", f"{core}/secrets", secret("Opaque")),
        "read ConfigMaps": ("GET", f"{core}/configmaps", None),
        "write a ConfigMap": ("POST", f"{core}/configmaps", config_map),
    }


@pytest.fixture(scope="module")
def cluster(api, request):
    """A server with the roles of all capabilities, the grants in one namespace, and the policies."""
    rest = api.rest
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": each}} for each in (GRANTED, NAMESPACE)
    ]
    granted = [each for capability in CAPABILITIES for each in rbac.manifests(capability)]
    for capability in CAPABILITIES:
        granted += [binding(capability.name, grant) for grant in rbac.grants(capability)]
    made = [*granted, FOREIGN, *account_policies()]
    for each in (*namespaces, *made):
        rest.replace_or_create(each)
    yield Session(api.url, api.authority.pem, api.admin_token)
    for each in reversed(made):
        rest.call("DELETE", f"{rest.collection(each)}/{each['metadata']['name']}")


def binding(capability, grant):
    name = rbac.grant_role(capability, grant)
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": GRANTED},
        "subjects": [{"kind": "ServiceAccount", "name": f"nodeyard-{capability}", "namespace": NAMESPACE}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
    }


def tried(cluster, capability, method, path, body):
    """Return the status of a dry run by a capability's account."""
    headers = {"Impersonate-User": rbac.username(f"nodeyard-{capability}")}
    query = {} if method == "GET" else {"dryRun": "All"}
    if method == "APPLY":
        query["fieldManager"] = "stolen"
        return cluster.request("PATCH", path, body, query=query, headers=headers, content_type=APPLY)
    content = {"content_type": MERGE} if method == "PATCH" else {}
    return cluster.request(method, path, body, query=query, headers=headers, **content)


@pytest.mark.parametrize("capability", NAMES)
def test_a_stolen_token_does_not_lead_to_more_rights(cluster, capability, eventually):
    granted = attacks(GRANTED)
    # A real server sees policies and roles a moment later, by its watches.
    minted = granted["mint a token by a Secret"]
    eventually(
        lambda: "may write only Secrets of type Opaque" in tried(cluster, "profiles", *minted).message,
        "the policies are known",
    )
    for what, attack in {**granted, **elsewhere()}.items():
        if what == "read a Secret" and capability in GETS_SECRETS:
            continue
        answer = tried(cluster, capability, *attack)
        assert answer.status == 403, f"{capability} may {what}: {answer.status} {answer.message}"
    if capability not in LISTS_SECRETS:
        assert tried(cluster, capability, "GET", "/api/v1/secrets", None).status == 403
    assert tried(cluster, capability, "GET", "/api/v1/configmaps", None).status == 403


@pytest.mark.parametrize("capability", NAMES)
def test_no_writable_secret_becomes_the_token_of_another_account(cluster, capability, eventually):
    """Covers Secrets that a rule names, which an apply creates, and those in the operator's own namespace."""
    minted = attacks(GRANTED)["mint a token by a Secret"]
    eventually(
        lambda: "may write only Secrets of type Opaque" in tried(cluster, "profiles", *minted).message,
        "the policies are known",
    )
    places = ((GRANTED, VALUES_SECRET), (NAMESPACE, VALUES_SECRET), (NAMESPACE, WEBHOOK_CERTIFICATES))
    for namespace, name in places:
        path = f"/api/v1/namespaces/{namespace}/secrets"
        token = {"apiVersion": "v1", "kind": "Secret", **secret("kubernetes.io/service-account-token", name)}
        for method, at in (("POST", path), ("APPLY", f"{path}/{name}")):
            answer = tried(cluster, capability, method, at, token)
            assert answer.status == 403, f"{capability} may {method} {at}: {answer.status} {answer.message}"


def test_the_account_of_affinity_applies_the_values_of_a_tenant(cluster):
    """Shows that the policy denies other types."""
    body = {"apiVersion": "v1", "kind": "Secret", **secret("Opaque", VALUES_SECRET)}
    path = f"/api/v1/namespaces/{GRANTED}/secrets/{VALUES_SECRET}"
    assert tried(cluster, "affinity", "APPLY", path, body).status == 201


def test_profiles_writes_opaque_secrets_where_that_is_granted_and_reports_why_no_others(cluster):
    path = f"/api/v1/namespaces/{GRANTED}/secrets"

    assert tried(cluster, "profiles", "POST", path, secret("Opaque")).status == 201
    answer = tried(cluster, "profiles", "POST", path, secret("kubernetes.io/service-account-token"))
    assert "ServiceAccounts of Nodeyard may write only Secrets of type Opaque" in answer.message
    listed = tried(cluster, "profiles", "GET", path, None)
    assert listed.status == 200


def test_no_more_capabilities_than_need_it_may_read_secrets_of_the_whole_cluster():
    assert {"clustertree"} >= LISTS_SECRETS
    assert {"pools", "clustertree"} >= GETS_SECRETS


# people


@pytest.fixture(scope="module")
def people(api):
    """`people("nodeyard-reader", "jane")` binds a person to a role; their kubeconfig."""
    third_party_crds.install(api.rest, [each for every in PLANNED for each in every.definitions()])
    with rights.people(api, PLANNED) as bind:
        yield bind


def planned(kubeconfig):
    chosen = ",".join(each.name for each in PLANNED)
    command = [*PROGRAM, "plan", "--capabilities", chosen, "--kubeconfig", str(kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


def explained(kubeconfig, template):
    command = [*PROGRAM, "why", f"nodetemplate/{template}", "--kubeconfig", str(kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)


@pytest.fixture
def template(api):
    spec = {"nodes": 0, "selector": {"matchLabels": {"accounts": "none"}}, "template": {"metadata": {}}}
    metadata = {"name": "accounts"}
    body = {"apiVersion": "nyallocator.cybozu.io/v1", "kind": "NodeTemplate", "metadata": metadata, "spec": spec}
    api.rest.replace_or_create(body)
    yield body["metadata"]["name"]
    api.rest.call("DELETE", f"{api.rest.collection(body)}/accounts")


def test_the_viewer_role_can_run_plan_and_why(api, people, template, eventually):
    kubeconfig = people("nodeyard-reader", "accounts-reader")
    reader = Session(api.url, api.authority.pem, api.admin_token)
    headers = {"Impersonate-User": "accounts-reader"}
    templates = "/apis/nyallocator.cybozu.io/v1/nodetemplates"
    eventually(lambda: reader.get(templates, headers=headers).status == 200, "the roles are gathered")

    done = planned(kubeconfig)
    assert done.returncode in {0, 2}, done.stdout + done.stderr
    assert "forbidden" not in (done.stdout + done.stderr).lower()
    told = explained(kubeconfig, template)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "forbidden" not in (told.stdout + told.stderr).lower()
    assert template in told.stdout
    for path in ("/api/v1/secrets", "/api/v1/namespaces/kube-system/secrets"):
        assert reader.get(path, headers=headers).status == 403
    patched = reader.patch(f"{templates}/{template}", {"metadata": {"annotations": {"a": "b"}}}, headers=headers)
    assert patched.status == 403, "who only reads approves nothing"


def test_the_approver_role_can_set_the_annotation(api, people, template, eventually):
    people("nodeyard-approver", "accounts-approver")
    http = Session(api.url, api.authority.pem, api.admin_token)
    path = f"/apis/nyallocator.cybozu.io/v1/nodetemplates/{template}"
    headers, approval = {"Impersonate-User": "accounts-approver"}, {"metadata": {"annotations": {APPROVE: "id"}}}
    eventually(lambda: http.patch(path, approval, headers=headers).status == 200, "the roles are gathered")
    assert http.get("/api/v1/secrets", headers=headers).status == 403


def test_the_account_of_the_operator_can_run_plan(api, people):
    """A person with the chart's role; Secrets and ConfigMaps are granted in no namespace."""
    rules = [rule for capability in PLANNED for rule in rbac.rules(capability)]
    done = planned(api.user("accounts-operator", rules=rules))
    assert done.returncode in {0, 2}, done.stdout + done.stderr
