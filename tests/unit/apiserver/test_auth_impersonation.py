"""Acting as someone else, where that is allowed."""

from typing import Any

import pytest

from nodeyard.apiserver.access import AccessControl
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.request_info import parse
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Store
from nodeyard.apiserver.transport import Request, User
from nodeyard.apiserver.user_file import KnownUser
from nodeyard.process.clock import VirtualClock

RBAC = "rbac.authorization.k8s.io"
ADMIN = KnownUser(name="admin", token="admin", groups=("system:masters",))
ALICE = KnownUser(name="alice", token="alice")


class Cluster:
    def __init__(self) -> None:
        self.store = Store()
        self.access = AccessControl(self.store, VirtualClock(), [ADMIN, ALICE])

    def grant(self, user: str, *rules: dict[str, Any]) -> None:
        self._put("clusterroles", user, rules=list(rules))
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": user}
        self._put("clusterrolebindings", user, roleRef=reference, subjects=[{"kind": "User", "name": user}])

    def _put(self, plural: str, name: str, **content: Any) -> None:
        self.store.commit(GroupResource(RBAC, plural), {"metadata": {"name": name}, **content}, {}, expect=None)

    def check(self, token: str, **headers: str) -> User:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request("GET", "/api/v1/nodes", headers={"authorization": f"Bearer {token}", **given})
        return self.access.check(request, parse(request))

    def refusal(self, token: str, **headers: str) -> ApiError:
        with pytest.raises(ApiError) as caught:
            self.check(token, **headers)
        return caught.value


def rule(verb: str, resource: str, group: str = "", *names: str) -> dict[str, Any]:
    return {"verbs": [verb], "resources": [resource], "apiGroups": [group], "resourceNames": list(names)}


LIST_NODES = rule("list", "nodes")


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.grant("bob", LIST_NODES)
    return made


def test_an_impersonator_is_authorized_as_the_impersonated_user(cluster: Cluster) -> None:
    assert cluster.check("admin", impersonate_user="bob").name == "bob"
    refused = cluster.refusal("admin", impersonate_user="carol")
    assert refused.message.startswith('nodes is forbidden: User "carol" cannot list resource "nodes"')


def test_groups_uid_and_extra_are_taken_over(cluster: Cluster) -> None:
    user = cluster.check(
        "admin",
        impersonate_user="bob",
        impersonate_group="ops\ndev",
        impersonate_uid="4",
        **{"impersonate-extra-acme.io%2fscopes": "a\nb"},
    )
    assert user.groups == ("ops", "dev", "system:authenticated")
    assert (user.uid, user.extra) == ("4", {"acme.io/scopes": ("a", "b")})


def test_a_service_account_comes_with_its_groups(cluster: Cluster) -> None:
    cluster.grant("system:serviceaccount:ci:robot", LIST_NODES)
    user = cluster.check("admin", impersonate_user="system:serviceaccount:ci:robot")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated")


def test_the_anonymous_stay_unauthenticated(cluster: Cluster) -> None:
    cluster.grant("system:anonymous", LIST_NODES)
    user = cluster.check("admin", impersonate_user="system:anonymous")
    assert user.groups == ("system:unauthenticated",)


def test_without_any_right_the_constrained_check_is_what_is_refused(cluster: Cluster) -> None:
    error = cluster.refusal("alice", impersonate_user="bob")
    assert error.message == (
        'nodes is forbidden: User "alice" cannot impersonate-on:user-info:list resource "nodes" in API group "" at the '
        "cluster scope"
    )
    for name, mode in (("system:node:n", "arbitrary-node"), ("system:serviceaccount:ns1:x", "serviceaccount")):
        assert f"cannot impersonate-on:{mode}:list" in cluster.refusal("alice", impersonate_user=name).message


def test_the_verb_impersonate_is_enough(cluster: Cluster) -> None:
    cluster.grant("alice", rule("impersonate", "users", "", "bob"))
    assert cluster.check("alice", impersonate_user="bob").name == "bob"
    assert cluster.refusal("alice", impersonate_user="carol").code == 403


def test_each_group_needs_its_own_right(cluster: Cluster) -> None:
    cluster.grant("alice", rule("impersonate", "users"), rule("impersonate", "groups", "", "dev"))
    assert cluster.check("alice", impersonate_user="bob", impersonate_group="dev").groups[0] == "dev"
    assert cluster.refusal("alice", impersonate_user="bob", impersonate_group="dev\nops").code == 403


AUTHENTICATION = "authentication.k8s.io"


def test_constrained_impersonation_takes_both_rights(cluster: Cluster) -> None:
    cluster.grant("alice", rule("impersonate-on:user-info:list", "nodes"))
    error = cluster.refusal("alice", impersonate_user="bob")
    assert 'cannot impersonate:user-info resource "users" in API group "authentication.k8s.io"' in error.message


def test_constrained_impersonation_is_for_the_allowed_verb_alone(cluster: Cluster) -> None:
    cluster.grant(
        "alice",
        rule("impersonate-on:user-info:list", "nodes"),
        rule("impersonate:user-info", "users", AUTHENTICATION, "bob"),
    )
    assert cluster.check("alice", impersonate_user="bob").name == "bob"
    request = Request("DELETE", "/api/v1/nodes/n", headers={"authorization": "Bearer alice", "impersonate-user": "bob"})
    with pytest.raises(ApiError, match="cannot impersonate-on:user-info:delete"):
        cluster.access.check(request, parse(request))


def test_constrained_impersonation_of_a_node_makes_it_one(cluster: Cluster) -> None:
    cluster.grant("system:node:n1", LIST_NODES)
    cluster.grant(
        "alice",
        rule("impersonate-on:arbitrary-node:list", "nodes"),
        rule("impersonate:arbitrary-node", "nodes", AUTHENTICATION, "n1"),
    )
    user = cluster.check("alice", impersonate_user="system:node:n1")
    assert user.groups == ("system:nodes", "system:authenticated")


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"impersonate_group": "system:masters"}, "impersonating the system:masters group is not allowed"),
        ({"impersonate_group": ""}, "impersonating the empty string group is not allowed"),
        ({"impersonate_extra_scopes": "a"}, "impersonating an invalid key in extra is not allowed: extra.key"),
    ],
)
def test_constrained_impersonation_never_reaches_too_far(cluster: Cluster, headers: dict[str, str], why: str) -> None:
    everything = {"verbs": ["impersonate:user-info", "impersonate-on:user-info:list"], "resources": ["*"]}
    cluster.grant("alice", {**everything, "apiGroups": ["*"]})
    assert why in cluster.refusal("alice", impersonate_user="bob", **headers).message


def test_impersonating_a_group_without_a_user_is_refused(cluster: Cluster) -> None:
    error = cluster.refusal("admin", impersonate_group="g")
    assert (error.code, error.reason) == (400, "BadRequest")
    assert error.message == (
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without '
        "impersonating a user name"
    )


def test_the_anonymous_may_not_impersonate(cluster: Cluster) -> None:
    request = Request("GET", "/api/v1/nodes", headers={"impersonate-user": "bob"})
    with pytest.raises(ApiError, match='User "system:anonymous" cannot impersonate-on:user-info:list'):
        cluster.access.check(request, parse(request))
