"""Access reviews, rules reviews, SelfSubjectReview and TokenReview."""

from typing import Any

import pytest

from nodeyard.apiserver.access import AccessControl
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.user_file import KnownUser
from nodeyard.process.clock import VirtualClock

RBAC = "rbac.authorization.k8s.io"
ALICE = User("alice", ("dev",), uid="a-1")
LIST_PODS = {"verb": "list", "resource": "pods", "namespace": "x"}


class Cluster:
    def __init__(self) -> None:
        self.store = Store()
        self.access = AccessControl(self.store, VirtualClock(), [KnownUser(name="bob", token="bob-token")])
        self.put("clusterroles", "reader", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
        self.bind("alice", "reader")

    def bind(self, user: str, role: str) -> None:
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": role}
        subjects = [{"kind": "User", "name": user}]
        self.put("clusterrolebindings", f"{user}-{role}", roleRef=reference, subjects=subjects)

    def put(self, plural: str, name: str, group: str = RBAC, **content: Any) -> None:
        metadata = {"name": name, **content.pop("metadata", {})}
        self.store.commit(GroupResource(group, plural), {"metadata": metadata, **content}, {}, expect=None)

    def review(self, kind: str, spec: dict[str, Any], user: User = ALICE, namespace: str = "") -> dict[str, Any]:
        return self.access.reviews.review(kind, {"spec": spec}, user, namespace)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_self_subject_access_review_names_what_allows_it(cluster: Cluster) -> None:
    answer = cluster.review("SelfSubjectAccessReview", {"resourceAttributes": LIST_PODS})
    assert answer["kind"] == "SelfSubjectAccessReview"
    assert answer["spec"] == {"resourceAttributes": LIST_PODS}
    assert answer["status"] == {
        "allowed": True,
        "reason": 'RBAC: allowed by ClusterRoleBinding "alice-reader" of ClusterRole "reader" to User "alice"',
    }


def test_a_denial_has_no_reason_unless_a_role_is_missing(cluster: Cluster) -> None:
    spec = {"resourceAttributes": {**LIST_PODS, "verb": "delete"}}
    assert cluster.review("SelfSubjectAccessReview", spec)["status"] == {"allowed": False}
    cluster.bind("alice", "gone")
    status = cluster.review("SelfSubjectAccessReview", spec)["status"]
    assert status["reason"] == 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'


def test_a_subject_access_review_asks_by_user_and_group(cluster: Cluster) -> None:
    spec = {"user": "root", "groups": ["system:masters"], "nonResourceAttributes": {"verb": "get", "path": "/x"}}
    assert cluster.review("SubjectAccessReview", spec)["status"] == {"allowed": True}
    spec = {"user": "nobody", "resourceAttributes": LIST_PODS}
    assert cluster.review("SubjectAccessReview", spec)["status"] == {"allowed": False}


def test_a_local_review_takes_the_namespace_of_its_path(cluster: Cluster) -> None:
    spec = {"user": "alice", "resourceAttributes": LIST_PODS}
    answer = cluster.review("LocalSubjectAccessReview", spec, namespace="x")
    assert answer["status"]["allowed"] is True
    assert answer["metadata"] == {"namespace": "x"}


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        (
            "SelfSubjectAccessReview",
            {},
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes "
            "must be specified",
        ),
        (
            "SelfSubjectAccessReview",
            {"resourceAttributes": {}, "nonResourceAttributes": {"verb": "get", "path": "/healthz"}},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/healthz","Verb":"get"}: cannot be specified in '
            "combination with resourceAttributes",
        ),
        (
            "SubjectAccessReview",
            {"nonResourceAttributes": {"verb": "get", "path": "/healthz"}},
            'spec.user: Invalid value: "": at least one of user or group must be specified',
        ),
        (
            "LocalSubjectAccessReview",
            {"user": "alice", "resourceAttributes": {"verb": "list"}},
            'spec.resourceAttributes.namespace: Invalid value: "": must match metadata.namespace',
        ),
        (
            "LocalSubjectAccessReview",
            {"user": "alice", "nonResourceAttributes": {"verb": "get", "path": "/healthz"}},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/healthz","Verb":"get"}: disallowed on this kind of '
            "request",
        ),
    ],
)
def test_an_invalid_access_review_is_refused(cluster: Cluster, kind: str, spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        cluster.review(kind, spec, namespace="x")
    assert caught.value.code == 422
    assert caught.value.message == f'.authorization.k8s.io "" is invalid: {message}'


def test_a_review_has_no_metadata(cluster: Cluster) -> None:
    body = {"metadata": {"name": "a"}, "spec": {"user": "a", "resourceAttributes": {}}}
    with pytest.raises(ApiError, match='metadata: Invalid value: {"name":"a"}: must be empty'):
        cluster.access.reviews.review("SubjectAccessReview", body, ALICE)


def test_a_self_subject_rules_review_lists_the_rules(cluster: Cluster) -> None:
    cluster.put("clusterroles", "prober", rules=[{"nonResourceURLs": ["/healthz"], "verbs": ["get"]}])
    cluster.bind("alice", "prober")
    status = cluster.review("SelfSubjectRulesReview", {"namespace": "x"})["status"]
    assert status == {
        "resourceRules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
        "incomplete": False,
    }


def test_a_self_subject_rules_review_reports_a_missing_role(cluster: Cluster) -> None:
    cluster.bind("alice", "gone")
    status = cluster.review("SelfSubjectRulesReview", {"namespace": "x"})["status"]
    assert status["incomplete"] is True
    assert status["evaluationError"] == 'clusterrole.rbac.authorization.k8s.io "gone" not found'


def test_a_self_subject_rules_review_needs_a_namespace(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match="no namespace on request"):
        cluster.review("SelfSubjectRulesReview", {})


def test_a_self_subject_review_returns_the_user(cluster: Cluster) -> None:
    answer = cluster.access.reviews.review("SelfSubjectReview", {}, ALICE)
    assert answer["status"]["userInfo"] == {"username": "alice", "uid": "a-1", "groups": ["dev"]}
    assert answer["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"


# tokens


def test_a_token_review_returns_the_user(cluster: Cluster) -> None:
    status = cluster.review("TokenReview", {"token": "bob-token"})["status"]
    assert status == {
        "authenticated": True,
        "user": {"username": "bob", "groups": ["system:authenticated"]},
        "audiences": ["https://kubernetes.default.svc"],
    }


@pytest.mark.parametrize("spec", [{"token": "nope"}, {"token": "bob-token", "audiences": ["other"]}])
def test_an_invalid_token_is_not_authenticated(cluster: Cluster, spec: dict[str, Any]) -> None:
    assert cluster.review("TokenReview", spec)["status"] == {"user": {}, "error": "invalid bearer token"}


def test_a_token_for_others_is_said_to_be_that(cluster: Cluster) -> None:
    metadata = {"namespace": "ci", "uid": "u"}
    cluster.put("serviceaccounts", "robot", group="", metadata=metadata)
    token = cluster.access.tokens.create("ci", "robot", {})["status"]["token"]
    status = cluster.review("TokenReview", {"token": token, "audiences": ["foo"]})["status"]
    assert status["error"] == (
        '[invalid bearer token, token audiences ["https://kubernetes.default.svc"] is invalid for the target audiences '
        '["foo"]]'
    )


def test_a_token_review_without_token_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match="token is required for TokenReview in authentication"):
        cluster.review("TokenReview", {})
