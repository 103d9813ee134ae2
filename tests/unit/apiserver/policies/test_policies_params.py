"""Parameters of a policy."""

from typing import Any

import pytest

from nodeyard.apiserver.admission.namespaces import NAMESPACES
from nodeyard.apiserver.resources import Resource, Strategy, Version
from nodeyard.schema.model import Schema


def rule(expression: str, **more: str) -> dict[str, Any]:
    return {"expression": expression, **more}


NO = rule("false", message="no")


def resource(plural: str, kind: str, group: str = "", *, versions: str = "v1", namespaced: bool = True) -> Resource:
    known = {name: Version(name, Schema()) for name in versions.split()}
    return Resource(group, kind, plural, kind.lower(), namespaced, known, versions.split()[0], Strategy())


NODES = resource("nodes", "Node", namespaced=False)

OF_CONFIGMAP = {"apiVersion": "v1", "kind": "ConfigMap"}


async def test_parameters_come_from_the_object_the_binding_names(cluster) -> None:
    cluster.configmap("limits", most="b")
    cluster.policy(rule("object.data.a == params.data.most"), paramKind=OF_CONFIGMAP, bind=False)
    cluster.bind(paramRef={"name": "limits", "parameterNotFoundAction": "Deny"})
    await cluster.judge()
    cluster.configmap("limits", most="z")
    assert await cluster.denial() == "failed expression: object.data.a == params.data.most"


async def test_parameters_may_be_in_another_namespace(cluster) -> None:
    cluster.configmap("limits", most="z")
    cluster.policy(rule("params.data.most != 'z'"), paramKind=OF_CONFIGMAP, bind=False)
    cluster.bind(paramRef={"name": "limits", "namespace": "ns", "parameterNotFoundAction": "Allow"})
    cluster.put(NAMESPACES, {"metadata": {"name": "other"}})
    assert await cluster.denial(namespace="other") == "failed expression: params.data.most != 'z'"


async def test_each_selected_object_is_used_as_parameter(cluster) -> None:
    cluster.configmap("one", most="b")
    cluster.configmap("two", most="z")
    cluster.policy(
        rule("object.data.a == params.data.most", messageExpression="string(params.metadata.name)"),
        paramKind=OF_CONFIGMAP,
        bind=False,
    )
    selector = {"matchLabels": {"for": "policy"}}
    cluster.bind(paramRef={"selector": selector, "parameterNotFoundAction": "Deny"})
    assert await cluster.denial() == "two"


MISSING = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"


@pytest.mark.parametrize("reference", [{"name": "gone"}, {"selector": {"matchLabels": {"for": "nobody"}}}])
async def test_missing_parameters_refuse_or_let_through(cluster, reference: dict[str, Any]) -> None:
    cluster.policy(NO, paramKind=OF_CONFIGMAP, bind=False)
    cluster.bind(paramRef={**reference, "parameterNotFoundAction": "Deny"})
    assert await cluster.denial() == MISSING
    cluster.bind(paramRef={**reference, "parameterNotFoundAction": "Allow"})
    await cluster.judge()


async def test_without_a_reference_there_are_no_parameters(cluster) -> None:
    cluster.policy(rule("params == null"), paramKind=OF_CONFIGMAP)
    await cluster.judge()


async def test_a_kind_of_parameters_nobody_serves_refuses(cluster) -> None:
    cluster.policy(NO, paramKind={"apiVersion": "foo.bar/v1", "kind": "Foo"})
    error = await cluster.refusal()
    assert error.message.endswith(
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced "
        "by paramKind: 'foo.bar/v1, Kind=Foo'"
    )


async def test_a_misconfigured_policy_may_be_ignored(cluster) -> None:
    cluster.policy(NO, paramKind={"apiVersion": "foo.bar/v1", "kind": "Foo"}, failurePolicy="Ignore")
    await cluster.judge()


async def test_parameters_outside_namespaces_have_none(cluster) -> None:
    cluster.policy(NO, paramKind={"apiVersion": "v1", "kind": "Node"}, bind=False)
    cluster.bind(paramRef={"name": "n", "namespace": "ns", "parameterNotFoundAction": "Deny"})
    assert await cluster.denial() == (
        "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
    )


async def test_namespaced_parameters_need_a_namespace(cluster) -> None:
    nodes = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["nodes"]}
    cluster.policy(NO, paramKind=OF_CONFIGMAP, matchConstraints={"resourceRules": [nodes]}, bind=False)
    cluster.bind(paramRef={"name": "x", "parameterNotFoundAction": "Deny"})
    assert await cluster.denial(NODES) == (
        "failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped "
        "resources"
    )
