"""An apply that creates an object needs the right to create it, in process and over HTTP; only the server itself needs
none."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.apiserver.transport import User, request

ADMIN = User("admin", ("system:masters",))
PATCHER = User("patcher")
APPLY = "application/apply-patch+yaml"
URL = "/api/v1/namespaces/default/configmaps/a?fieldManager=m"
BODY = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


@pytest.fixture
async def server(clock):
    server = Server(clock, seed=1)
    await server.start(())
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    binding = {
        "metadata": {"name": "patcher"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "patcher"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "patcher"}],
    }
    await server.call("POST", role, {"metadata": {"name": "patcher"}, "rules": [rule]})
    await server.call("POST", role.replace("clusterroles", "clusterrolebindings"), binding)
    yield server
    await server.stop()


async def apply(server: Server, user: User) -> int:
    return (await server.handle(request("PATCH", URL, BODY, user=user, content_type=APPLY))).status


async def test_an_apply_needs_the_right_to_create(server):
    assert await apply(server, PATCHER) == 403


async def test_the_right_to_patch_suffices_to_apply_existing_objects(server):
    await apply(server, ADMIN)

    assert await apply(server, PATCHER) == 200


async def test_a_call_of_the_servers_own_needs_no_right(server):
    made = await server.call("PATCH", URL, BODY, user=PATCHER, content_type=APPLY)

    assert made["metadata"]["name"] == "a"
