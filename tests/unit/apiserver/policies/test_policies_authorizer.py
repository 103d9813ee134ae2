"""Policies that ask the authorizer about the user."""

from typing import Any

import pytest

from nodeyard.apiserver.resources import GroupResource

RBAC = "rbac.authorization.k8s.io"


def rule(expression: str, **more: str) -> dict[str, Any]:
    return {"expression": expression, **more}


def grant(cluster, *rules: dict[str, Any]) -> None:
    cluster.put(GroupResource(RBAC, "clusterroles"), {"metadata": {"name": "r"}, "rules": list(rules)})
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "r"}
    subjects = [{"kind": "User", "name": "alice"}, {"kind": "ServiceAccount", "name": "robot", "namespace": "ci"}]
    binding = {"metadata": {"name": "r"}, "roleRef": reference, "subjects": subjects}
    cluster.put(GroupResource(RBAC, "clusterrolebindings"), binding)


@pytest.mark.parametrize(
    ("expression", "is_allowed"),
    [
        ("authorizer.group('').resource('pods').namespace('x').check('get').allowed()", True),
        ("authorizer.group('').resource('pods').check('delete').allowed()", False),
        ("authorizer.group('').resource('pods').subresource('log').check('get').allowed()", False),
        ("authorizer.group('').resource('secrets').name('s').check('get').allowed()", True),
        ("authorizer.group('').resource('secrets').name('t').check('get').allowed()", False),
        ("authorizer.requestResource.check('approve').allowed()", True),
        ("authorizer.path('/healthz').check('get').allowed()", True),
        ("authorizer.path('/metrics').check('get').allowed()", False),
        ("authorizer.serviceAccount('ci', 'robot').group('').resource('pods').check('get').allowed()", True),
        ("authorizer.serviceAccount('ci', 'other').group('').resource('pods').check('get').allowed()", False),
        ("authorizer.path('/healthz').check('get').reason().startsWith('RBAC: allowed by')", True),
        ("authorizer.path('/healthz').check('get').errored()", False),
    ],
)
async def test_a_policy_may_check_other_rights_of_the_user(cluster, expression: str, is_allowed: bool) -> None:
    grant(
        cluster,
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["c"], "verbs": ["approve"]},
        {"nonResourceURLs": ["/healthz"], "verbs": ["get"]},
    )
    cluster.policy(rule(f"({expression}) == {str(is_allowed).lower()}"))
    await cluster.judge()


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
        ("authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
        (
            "authorizer.serviceAccount('ci', 'no@name').path('/x').check('get').allowed()",
            "Invalid service account name",
        ),
    ],
)
async def test_an_invalid_authorizer_check_fails(cluster, expression: str, fault: str) -> None:
    cluster.policy(rule(expression))
    assert (await cluster.denial()).endswith(f"resulted in error: {fault}")
