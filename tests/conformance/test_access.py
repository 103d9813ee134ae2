"""Authorization: RBAC, access reviews, impersonation, service accounts."""

from __future__ import annotations

import base64
import json

import pytest

from nodeyard.testing.session import Session

RBAC = "/apis/rbac.authorization.k8s.io/v1"
READ_NODES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]


class CertificateSession(Session):
    """Client of a user with a client certificate."""

    def __init__(self, api, kubeconfig, tmp_path) -> None:
        super().__init__(api.url, api.authority.pem)
        user = json.loads(kubeconfig.read_text())["users"][0]["user"]
        pair = tmp_path / "pair.pem"
        pair.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
        self._connections.trust.load_cert_chain(pair)


@pytest.fixture
def acting(api, tmp_path, fresh):
    """Client of a new user with these rights."""

    def act(rules=(), groups=(), namespace=None) -> CertificateSession:
        session = CertificateSession(
            api, api.user(name := fresh("user"), groups=groups, rules=rules, namespace=namespace), tmp_path
        )
        session.name = name
        return session

    return act


def test_requests_without_a_granted_right_are_forbidden_with_the_reason(acting):
    user = acting()

    answer = user.get("/api/v1/nodes")

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == (
        f'nodes is forbidden: User "{user.name}" cannot list resource "nodes" in API group "" at the cluster scope'
    )


def test_a_grant_is_for_its_verbs_alone(acting, eventually):
    user = acting(READ_NODES)
    eventually(lambda: user.get("/api/v1/nodes").status == 200, "the grant takes effect")

    answer = user.post("/api/v1/nodes", {"metadata": {"name": "n"}})

    assert answer.status == 403
    assert 'cannot create resource "nodes"' in answer.message


def test_a_role_is_for_its_namespace_alone(acting, namespace, eventually):
    user = acting([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}], namespace=namespace)

    eventually(lambda: user.get(f"/api/v1/namespaces/{namespace}/configmaps").status == 200, "the role takes effect")
    assert user.get("/api/v1/namespaces/default/configmaps").status == 403
    assert user.get("/api/v1/configmaps").status == 403


def test_a_role_is_not_for_namespaces_by_a_path_within_its_own(acting, namespace, eventually):
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    user = acting([everything], namespace=namespace)
    within = f"/api/v1/namespaces/{namespace}/namespaces"

    eventually(lambda: user.get(f"/api/v1/namespaces/{namespace}/configmaps").status == 200, "the role takes effect")
    assert user.get(within).status == 404
    assert user.get(f"{within}/default").status == 404
    assert user.post(within, {"metadata": {"name": "another"}}).status == 404
    assert user.delete(f"{within}/{namespace}").status == 404


def test_a_role_asks_about_its_namespace_alone(acting, namespace, eventually):
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    user = acting([everything], namespace=namespace)
    reviews = f"/apis/authorization.k8s.io/v1/namespaces/{namespace}"
    asked = {"user": "someone", "resourceAttributes": {"namespace": namespace, "verb": "get", "resource": "pods"}}

    eventually(
        lambda: user.post(f"{reviews}/localsubjectaccessreviews", {"spec": asked}).status == 201,
        "the role takes effect",
    )
    assert user.post(f"{reviews}/subjectaccessreviews", {"spec": asked}).status == 404


def test_a_rule_can_name_objects(acting, http, configmaps, namespace, eventually):
    http.post(configmaps, {"metadata": {"name": "mine"}})
    http.post(configmaps, {"metadata": {"name": "yours"}})
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["get"]}]
    user = acting(rules, namespace=namespace)

    eventually(lambda: user.get(f"{configmaps}/mine").status == 200, "the role takes effect")
    assert user.get(f"{configmaps}/yours").status == 403


def test_subresources_are_granted_apart(acting, http, fresh, eventually):
    name = fresh("node")
    http.post("/api/v1/nodes", {"metadata": {"name": name}})
    user = acting([{"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]}])

    eventually(
        lambda: user.patch(f"/api/v1/nodes/{name}/status", {"status": {"phase": "Running"}}).status == 200,
        "the grant takes effect",
    )
    assert user.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"a": "b"}}}).status == 403
    http.delete(f"/api/v1/nodes/{name}")


def test_an_apply_that_creates_needs_the_right_to_create(acting, configmaps, namespace, eventually):
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "list"]}]
    user = acting(rules, namespace=namespace)
    eventually(lambda: user.get(configmaps).status == 200, "the role takes effect")

    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    answer = user.patch(f"{configmaps}/a", body, "application/apply-patch+yaml", query={"fieldManager": "m"})

    assert answer.status == 403
    assert 'cannot create resource "configmaps"' in answer.message


def test_an_update_that_creates_needs_the_right_to_create(acting, namespace, eventually):
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    rules = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["update", "list"]}]
    user = acting(rules, namespace=namespace)
    eventually(lambda: user.get(leases).status == 200, "the role takes effect")

    answer = user.put(f"{leases}/a", {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}})

    assert answer.status == 403
    assert 'cannot create resource "leases"' in answer.message


def test_discovery_is_for_everyone_who_logged_in(acting):
    user = acting()

    assert [user.get(path).status for path in ("/api", "/apis", "/api/v1", "/openapi/v3", "/version")] == [200] * 5


def test_a_self_subject_access_review_answers(acting, eventually):
    user = acting(READ_NODES)

    def allowed(verb: str) -> bool:
        spec = {"resourceAttributes": {"verb": verb, "resource": "nodes"}}
        answer = user.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": spec})
        assert answer.status == 201
        return answer.json["status"]["allowed"]

    eventually(lambda: allowed("list"), "the grant takes effect")
    assert not allowed("delete")


def test_a_subject_access_review_answers_for_another_user(http, fresh):
    spec = {
        "user": fresh("stranger"),
        "resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "default"},
    }

    answer = http.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})

    assert answer.json["status"]["allowed"] is False


def test_a_self_subject_review_names_the_user(acting):
    user = acting(groups=["dev"])

    answer = user.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})

    info = answer.json["status"]["userInfo"]
    assert info["username"] == user.name
    assert {"dev", "system:authenticated"} <= set(info["groups"])


def test_an_administrator_can_act_as_someone_else(http, fresh):
    headers = {"Impersonate-User": fresh("someone"), "Impersonate-Group": "dev"}

    assert http.get("/api/v1/nodes", headers=headers).status == 403
    who = http.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers=headers).json
    assert who["status"]["userInfo"]["username"] == headers["Impersonate-User"]


def test_impersonation_is_forbidden_without_the_right(acting):
    answer = acting().get("/api/v1/nodes", headers={"Impersonate-User": "admin"})

    assert answer.status == 403
    assert "impersonate" in answer.message


def test_nobody_can_grant_more_rights_than_they_have(acting, fresh, eventually):
    rules = [
        *READ_NODES,
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"]},
    ]
    user = acting(rules)
    eventually(lambda: user.get("/api/v1/nodes").status == 200, "the grant takes effect")
    greedy = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]

    refused = user.post(f"{RBAC}/clusterroles", {"metadata": {"name": fresh("greedy")}, "rules": greedy})
    granted = user.post(f"{RBAC}/clusterroles", {"metadata": {"name": fresh("modest")}, "rules": READ_NODES})

    assert refused.status == 403
    assert "is attempting to grant RBAC permissions not currently held" in refused.message
    assert granted.status == 201


def test_the_roles_that_every_cluster_has_are_there(http):
    names = [item["metadata"]["name"] for item in http.get(f"{RBAC}/clusterroles").json["items"]]

    assert {"admin", "cluster-admin", "edit", "system:basic-user", "system:discovery", "view"} <= set(names)
    assert http.get(f"{RBAC}/clusterroles/view").json["aggregationRule"]["clusterRoleSelectors"]


def test_a_role_binding_keeps_its_role(http, namespace):
    path = f"{RBAC}/namespaces/{namespace}/rolebindings"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    http.post(path, {"metadata": {"name": "b"}, "roleRef": role, "subjects": []})

    answer = http.patch(f"{path}/b", {"roleRef": {"name": "edit"}})

    assert answer.status == 422
    assert answer.causes[0]["field"] == "roleRef"


def test_a_service_account_logs_in_with_its_token(api, http, namespace):
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    http.post(accounts, {"metadata": {"name": "robot"}})

    token = http.post(f"{accounts}/robot/token", {"spec": {"expirationSeconds": 600}}).json["status"]["token"]
    robot = Session(api.url, api.authority.pem, token)
    who = robot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}).json["status"]["userInfo"]

    assert who["username"] == f"system:serviceaccount:{namespace}:robot"
    assert {"system:serviceaccounts", f"system:serviceaccounts:{namespace}"} <= set(who["groups"])
