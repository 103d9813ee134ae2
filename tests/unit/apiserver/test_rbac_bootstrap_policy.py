"""Default roles of a cluster, and those of the users it was started for."""

from typing import Any

import pytest

from nodeyard.apiserver.errors import ApiError, already_exists
from nodeyard.apiserver.rbac.bootstrap_policy import bootstrap, default_policy
from nodeyard.apiserver.rbac.rules import Rule
from nodeyard.apiserver.user_file import KnownUser


class Calls:
    """Fake server that records created objects, and refuses given ones."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.created: list[tuple[str, Any]] = []
        self._error = error

    async def call(self, method: str, url: str, body: Any = None) -> Any:
        assert method == "POST"
        self.created.append((url, body))
        if self._error:
            raise self._error


async def test_the_default_roles_and_bindings_are_created() -> None:
    server = Calls()
    await bootstrap(server)
    names = {(body["kind"], body["metadata"]["name"]) for _, body in server.created}
    assert {("ClusterRole", name) for name in ("cluster-admin", "admin", "edit", "view", "system:discovery")} <= names
    assert ("ClusterRoleBinding", "system:public-info-viewer") in names
    assert server.created[0][0] == "/apis/rbac.authorization.k8s.io/v1/clusterroles"


async def test_existing_roles_are_kept() -> None:
    server = Calls(already_exists("", "clusterroles", "x"))
    await bootstrap(server)
    assert len(server.created) == len(default_policy())


async def test_any_other_refusal_is_not_passed_over() -> None:
    with pytest.raises(ApiError, match="broken"):
        await bootstrap(Calls(ApiError(500, "InternalError", "broken")))


async def test_the_default_roles_are_marked_as_such() -> None:
    for manifest in default_policy():
        assert manifest["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert manifest["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] == "true"


async def test_a_users_rules_become_a_role_and_its_binding() -> None:
    server = Calls()
    rule = Rule(verbs=("get",), api_groups=("",), resources=("nodes",))
    await bootstrap(server, [KnownUser(name="alice", token="t", rules=(rule,)), KnownUser(name="bob", token="u")])
    role, binding = (body for _, body in server.created[len(default_policy()) :])
    assert role["metadata"]["name"] == binding["roleRef"]["name"] == "nodeyard:user:alice"
    assert binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
    assert list(role["rules"][0]["resources"]) == ["nodes"]


async def test_a_service_account_among_the_users_is_made_with_its_namespace() -> None:
    server = Calls()
    await bootstrap(server, [KnownUser(name="system:serviceaccount:ci:robot", token="t")])
    assert server.created[len(default_policy()) :] == [
        ("/api/v1/namespaces", {"metadata": {"name": "ci"}}),
        ("/api/v1/namespaces/ci/serviceaccounts", {"metadata": {"name": "robot"}}),
    ]
