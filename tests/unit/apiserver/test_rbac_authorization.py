"""RBAC enforced from roles and bindings in the store, as they come and go."""

from typing import Any

import pytest

from nodeyard.apiserver.authorization import Authorizer
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.rbac.bootstrap_policy import default_policy
from nodeyard.apiserver.rbac.index import RbacIndex
from nodeyard.apiserver.request_info import parse
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Store, Stored
from nodeyard.apiserver.transport import User, request

GROUP = "rbac.authorization.k8s.io"
ALICE = User("alice", ("dev", "system:authenticated"))
ROBOT = User("system:serviceaccount:ci:robot", ("system:serviceaccounts", "system:authenticated"))


class Cluster:
    def __init__(self) -> None:
        self.store = Store()
        self.authorizer = Authorizer(RbacIndex(self.store))

    def put(self, obj: dict[str, Any]) -> Stored:
        metadata = obj["metadata"]
        resource = GroupResource(GROUP, obj["kind"].lower() + "s")
        old = self.store.get(resource, metadata.get("namespace", ""), metadata["name"])
        return self.store.commit(resource, obj, {}, expect=old)

    def remove(self, stored: Stored, kind: str) -> None:
        self.store.remove(GroupResource(GROUP, kind.lower() + "s"), stored)

    def role(self, name: str, *rules: dict[str, Any], namespace: str = "", **more: Any) -> Stored:
        metadata = {"name": name, "labels": more.pop("labels", {})} | ({"namespace": namespace} if namespace else {})
        kind = "Role" if namespace else "ClusterRole"
        return self.put({"kind": kind, "metadata": metadata, "rules": list(rules), **more})

    def bind(self, name: str, role: str, *subjects: dict[str, str], namespace: str = "", kind: str = "") -> Stored:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        reference = {"apiGroup": GROUP, "kind": kind or ("Role" if namespace else "ClusterRole"), "name": role}
        binding = "RoleBinding" if namespace else "ClusterRoleBinding"
        return self.put({"kind": binding, "metadata": metadata, "roleRef": reference, "subjects": list(subjects)})

    def may(self, user: User, method: str, url: str) -> bool:
        return self.authorizer.authorize(user, parse(request(method, url))).is_allowed

    def refusal(self, user: User, method: str, url: str) -> ApiError:
        with pytest.raises(ApiError) as caught:
            self.authorizer.check(user, parse(request(method, url)))
        return caught.value


READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "name": name, "apiGroup": GROUP}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_initially_only_system_masters_have_rights(cluster: Cluster) -> None:
    assert not cluster.may(ALICE, "GET", "/api/v1/nodes")
    assert cluster.may(User("root", ("system:masters",)), "DELETE", "/api/v1/nodes")


def test_a_cluster_role_binding_grants_everywhere(cluster: Cluster) -> None:
    cluster.role("reader", READ_PODS)
    cluster.bind("readers", "reader", user("alice"))
    assert cluster.may(ALICE, "GET", "/api/v1/pods")
    assert cluster.may(ALICE, "GET", "/api/v1/namespaces/x/pods?watch=true")
    assert not cluster.may(ALICE, "DELETE", "/api/v1/namespaces/x/pods/p")
    assert not cluster.may(User("bob"), "GET", "/api/v1/pods")


@pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
def test_a_role_binding_grants_in_its_namespace(cluster: Cluster, kind: str) -> None:
    cluster.role("reader", READ_PODS, namespace="x" if kind == "Role" else "")
    cluster.bind("readers", "reader", user("alice"), namespace="x", kind=kind)
    assert cluster.may(ALICE, "GET", "/api/v1/namespaces/x/pods")
    assert not cluster.may(ALICE, "GET", "/api/v1/namespaces/y/pods")
    assert not cluster.may(ALICE, "GET", "/api/v1/pods")


def test_groups_and_service_accounts_hold_roles_too(cluster: Cluster) -> None:
    cluster.role("reader", READ_PODS)
    cluster.bind("a", "reader", {"kind": "Group", "name": "dev", "apiGroup": GROUP})
    cluster.bind("b", "reader", {"kind": "ServiceAccount", "name": "robot", "namespace": "ci"})
    assert cluster.may(ALICE, "GET", "/api/v1/pods")
    assert cluster.may(ROBOT, "GET", "/api/v1/pods")


def test_a_service_account_without_namespace_is_that_of_the_role_binding(cluster: Cluster) -> None:
    cluster.role("reader", READ_PODS)
    cluster.bind("local", "reader", {"kind": "ServiceAccount", "name": "robot"}, namespace="ci", kind="ClusterRole")
    cluster.bind("nowhere", "reader", {"kind": "ServiceAccount", "name": "robot"})
    assert cluster.may(ROBOT, "GET", "/api/v1/namespaces/ci/pods")
    assert not cluster.may(ROBOT, "GET", "/api/v1/pods")


def test_rights_end_with_their_binding(cluster: Cluster) -> None:
    cluster.role("reader", READ_PODS)
    binding = cluster.bind("readers", "reader", user("alice"))
    assert cluster.may(ALICE, "GET", "/api/v1/pods")
    cluster.remove(binding, "ClusterRoleBinding")
    assert not cluster.may(ALICE, "GET", "/api/v1/pods")


def test_rights_follow_the_binding_when_its_subjects_change(cluster: Cluster) -> None:
    cluster.role("reader", READ_PODS)
    cluster.bind("readers", "reader", user("alice"))
    cluster.bind("readers", "reader", user("bob"))
    assert not cluster.may(ALICE, "GET", "/api/v1/pods")
    assert cluster.may(User("bob"), "GET", "/api/v1/pods")


def test_rights_follow_the_role_when_its_rules_change(cluster: Cluster) -> None:
    cluster.role("reader", READ_PODS)
    cluster.bind("readers", "reader", user("alice"))
    cluster.role("reader", {**READ_PODS, "resources": ["nodes"]})
    assert cluster.may(ALICE, "GET", "/api/v1/nodes")
    assert not cluster.may(ALICE, "GET", "/api/v1/pods")


def test_roles_stored_before_the_start_are_used() -> None:
    before = Cluster()
    before.role("reader", READ_PODS)
    before.bind("readers", "reader", user("alice"))
    info = parse(request("GET", "/api/v1/pods"))
    assert Authorizer(RbacIndex(before.store)).authorize(ALICE, info).is_allowed


def test_a_list_narrowed_to_one_name_is_covered_by_a_right_on_that_name(cluster: Cluster) -> None:
    cluster.role("one", {**READ_PODS, "resourceNames": ["p"]})
    cluster.bind("ones", "one", user("alice"))
    assert cluster.may(ALICE, "GET", "/api/v1/pods?fieldSelector=metadata.name%3Dp&watch=1")
    assert not cluster.may(ALICE, "GET", "/api/v1/pods")


# aggregation


def test_an_aggregated_role_holds_the_rules_of_those_it_selects_through_several_steps(cluster: Cluster) -> None:
    def gathers(label: str) -> dict[str, Any]:
        return {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}

    cluster.role("top", aggregationRule=gathers("to-top"))
    cluster.role("middle", labels={"to-top": "true"}, aggregationRule=gathers("to-middle"))
    cluster.bind("tops", "top", user("alice"))
    assert not cluster.may(ALICE, "GET", "/api/v1/pods")
    leaf = cluster.role("leaf", READ_PODS, labels={"to-middle": "true"})
    assert cluster.may(ALICE, "GET", "/api/v1/pods")
    cluster.remove(leaf, "ClusterRole")
    assert not cluster.may(ALICE, "GET", "/api/v1/pods")


def test_roles_that_aggregate_each_other_come_to_an_end(cluster: Cluster) -> None:
    each = {"clusterRoleSelectors": [{"matchLabels": {"ring": "true"}}]}
    cluster.role("a", labels={"ring": "true"}, aggregationRule=each)
    cluster.role("b", labels={"ring": "true"}, aggregationRule=each)
    cluster.role("c", READ_PODS, labels={"ring": "true"})
    cluster.bind("ring", "a", user("alice"))
    assert cluster.may(ALICE, "GET", "/api/v1/pods")


# refusals


@pytest.mark.parametrize(
    ("method", "url", "message", "details"),
    [
        (
            "GET",
            "/api/v1/nodes",
            'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope',
            {"kind": "nodes"},
        ),
        (
            "POST",
            "/api/v1/namespaces/x/pods/p/eviction",
            'pods "p" is forbidden: User "alice" cannot create resource "pods/eviction" in API group "" in the '
            'namespace "x"',
            {"name": "p", "kind": "pods"},
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/x/deployments/d",
            'deployments.apps "d" is forbidden: User "alice" cannot patch resource "deployments" in API group "apps" '
            'in the namespace "x"',
            {"name": "d", "group": "apps", "kind": "deployments"},
        ),
        ("GET", "/foo", 'forbidden: User "alice" cannot get path "/foo"', {}),
        ("GET", "/<b>", 'forbidden: User "alice" cannot get path "/&lt;b&gt;"', {}),
    ],
)
def test_a_denial_names_user_and_request(
    cluster: Cluster, method: str, url: str, message: str, details: dict[str, str]
) -> None:
    error = cluster.refusal(ALICE, method, url)
    assert (error.code, error.reason, error.message, error.details) == (403, "Forbidden", message, details)


def test_a_refusal_names_the_roles_that_are_missing(cluster: Cluster) -> None:
    cluster.bind("a", "gone", user("alice"))
    cluster.bind("b", "lost", user("alice"), namespace="x")
    error = cluster.refusal(ALICE, "GET", "/api/v1/namespaces/x/pods")
    assert error.message.endswith(
        ': RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, '
        'role.rbac.authorization.k8s.io "lost" not found]'
    )


# the roles every cluster starts with


@pytest.fixture
def bootstrapped(cluster: Cluster) -> Cluster:
    for manifest in default_policy():
        cluster.put(manifest)
    return cluster


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version"])
def test_anyone_sees_health_and_version(bootstrapped: Cluster, path: str) -> None:
    anonymous = User("system:anonymous", ("system:unauthenticated",))
    assert bootstrapped.may(anonymous, "GET", path)
    assert not bootstrapped.may(anonymous, "GET", "/apis")


def test_authenticated_users_may_use_discovery_and_self_reviews(bootstrapped: Cluster) -> None:
    for url in ("/api", "/apis", "/apis/apps/v1", "/openapi/v3"):
        assert bootstrapped.may(ALICE, "GET", url)
    assert bootstrapped.may(ALICE, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
    assert not bootstrapped.may(ALICE, "GET", "/api/v1/namespaces/x/pods")


@pytest.mark.parametrize(
    ("role", "allowed", "refused"),
    [
        ("view", ["GET pods", "GET configmaps"], ["GET secrets", "POST pods"]),
        ("edit", ["GET secrets", "POST pods", "DELETE services", "GET configmaps"], ["POST rolebindings"]),
        ("admin", ["POST pods", "POST rolebindings", "GET configmaps"], ["DELETE nodes"]),
        ("cluster-admin", ["POST anything"], []),
    ],
)
def test_the_users_roles_allow_what_they_are_for(
    bootstrapped: Cluster, role: str, allowed: list[str], refused: list[str]
) -> None:
    bootstrapped.bind("alice", role, user("alice"), namespace="x", kind="ClusterRole")

    def may(text: str) -> bool:
        method, plural = text.split()
        prefix = f"/apis/{GROUP}/v1" if plural == "rolebindings" else "/api/v1"
        return bootstrapped.may(ALICE, method, f"{prefix}/namespaces/x/{plural}")

    assert [may(text) for text in allowed] == [True] * len(allowed)
    assert [may(text) for text in refused] == [False] * len(refused)
