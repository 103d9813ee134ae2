"""The writes that a policy matches."""

from typing import Any

import pytest

from nodeyard.apiserver.admission.policies.index import BINDINGS
from nodeyard.apiserver.resources import Resource, Strategy, Version
from nodeyard.schema.model import Schema


def rule(expression: str, **more: str) -> dict[str, Any]:
    return {"expression": expression, **more}


NO = rule("false", message="no")


def resource(plural: str, kind: str, group: str = "", *, versions: str = "v1", namespaced: bool = True) -> Resource:
    known = {name: Version(name, Schema()) for name in versions.split()}
    return Resource(group, kind, plural, kind.lower(), namespaced, known, versions.split()[0], Strategy())


NODES = resource("nodes", "Node", namespaced=False)
WIDGETS = resource("widgets", "Widget", "example.com", versions="v2 v1")
ALL_CONFIGMAPS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}


async def test_a_policy_without_binding_has_no_effect(cluster) -> None:
    cluster.policy(NO, bind=False)
    await cluster.judge()


async def test_policies_and_bindings_take_effect_and_end_at_once(cluster) -> None:
    cluster.policy(NO)
    await cluster.refusal()
    stored = cluster.store.get(BINDINGS, "", "b")
    assert stored is not None
    cluster.store.remove(BINDINGS, stored)
    await cluster.judge()


async def test_a_policy_validates_what_its_rules_cover(cluster) -> None:
    cluster.policy(NO)
    await cluster.judge(NODES)
    await cluster.judge(subresource="status")
    assert await cluster.denial(operation="UPDATE") == "no"


async def test_rules_may_name_objects(cluster) -> None:
    named = {**ALL_CONFIGMAPS, "resourceNames": ["c"]}
    cluster.policy(NO, matchConstraints={"resourceRules": [named]})
    await cluster.judge(name="d")
    assert await cluster.denial() == "no"


async def test_excluded_rules_win(cluster) -> None:
    excluded = {**ALL_CONFIGMAPS, "resourceNames": ["c"]}
    cluster.policy(NO, matchConstraints={"resourceRules": [ALL_CONFIGMAPS], "excludeResourceRules": [excluded]})
    await cluster.judge()
    assert await cluster.denial(name="d") == "no"


@pytest.mark.parametrize(("team", "is_denied"), [("a", True), ("b", False)])
async def test_a_constraint_may_select_namespaces(cluster, team: str, is_denied: bool) -> None:
    selector = {"matchLabels": {"team": team}}
    cluster.policy(NO, matchConstraints={"resourceRules": [ALL_CONFIGMAPS], "namespaceSelector": selector})
    if is_denied:
        assert await cluster.denial() == "no"
    else:
        await cluster.judge()


async def test_a_binding_narrows_its_policy_further(cluster) -> None:
    cluster.policy(NO, bind=False)
    cluster.bind(matchResources={"objectSelector": {"matchLabels": {"strict": "yes"}}})
    await cluster.judge()
    strict = {"metadata": {"name": "c", "labels": {"strict": "yes"}}}
    assert await cluster.denial(object=strict) == "no"


async def test_a_binding_with_rules_is_for_those_alone(cluster) -> None:
    cluster.policy(NO, bind=False)
    cluster.bind(matchResources={"resourceRules": [{**ALL_CONFIGMAPS, "operations": ["UPDATE"]}]})
    await cluster.judge()
    assert await cluster.denial(operation="UPDATE") == "no"


async def test_an_object_is_validated_in_the_version_the_policy_names(cluster) -> None:
    covered = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["widgets"]}
    shown = "object.apiVersion + ' ' + request.kind.version + ' ' + request.requestKind.version"
    cluster.policy(rule("false", messageExpression=shown), matchConstraints={"resourceRules": [covered]})
    obj = {"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "c"}}
    assert await cluster.denial(WIDGETS, version="v2", object=obj) == "example.com/v1 v1 v2"


async def test_policies_do_not_validate_policies(cluster) -> None:
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    cluster.policy(NO, matchConstraints={"resourceRules": [everything]})
    policies = resource("validatingadmissionpolicies", "ValidatingAdmissionPolicy", "admissionregistration.k8s.io")
    await cluster.judge(policies)
