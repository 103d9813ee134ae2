"""Expressions are checked when the policy or webhook configuration that holds them is written."""

from typing import Any

import pytest

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.expression_check import ExpressionCheck
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.resources import Resource, Strategy, Version
from nodeyard.apiserver.transport import User
from nodeyard.apiserver.worker_thread import WorkerThread
from nodeyard.schema.model import Schema


async def check(kind: str, old: dict[str, Any] | None = None, **content: Any) -> None:
    plural, versions = f"{kind.lower()}s", {"v1": Version("v1", Schema())}
    resource = Resource("admissionregistration.k8s.io", kind, plural, kind.lower(), False, versions, "v1", Strategy())
    await ExpressionCheck().validate(
        Attributes(
            operation="UPDATE" if old else "CREATE",
            resource=resource,
            version="v1",
            subresource="",
            namespace="",
            name="p",
            object={"metadata": {"name": "p"}, **content},
            old=old,
            user=User("alice"),
            work=WorkerThread().work(),
        )
    )


async def faults(kind: str, **content: Any) -> list[tuple[str, str]]:
    with pytest.raises(ApiError) as caught:
        await check(kind, **content)
    error = caught.value
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message.startswith(f'{kind}.admissionregistration.k8s.io "p" is invalid: ')
    assert error.details is not None
    return [(cause["field"], cause["message"].partition('": ')[2]) for cause in error.details["causes"]]


def rule(expression: str, **more: str) -> dict[str, str]:
    return {"expression": expression, **more}


POLICY = "ValidatingAdmissionPolicy"


async def test_expressions_that_compile_are_accepted() -> None:
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "variables": [rule("object.spec.replicas", name="n")],
        "matchConditions": [rule("request.operation != 'DELETE'", name="c")],
        "validations": [rule("variables.n <= params.data.most", messageExpression="'at most ' + params.data.most")],
        "auditAnnotations": [{"key": "k", "valueExpression": "request.userInfo.username"}],
    }
    await check(POLICY, spec=spec)


@pytest.mark.parametrize(
    ("spec", "field", "fault"),
    [
        (
            {"validations": [rule("request.foo == 1")]},
            "spec.validations[0].expression",
            "compilation failed: ERROR: <input>:1:8: undefined field 'foo'\n | request.foo == 1\n | .......^",
        ),
        ({"validations": [rule("'a'")]}, "spec.validations[0].expression", "must evaluate to bool but got string"),
        (
            {"validations": [rule("true"), rule("true", messageExpression="1")]},
            "spec.validations[1].messageExpression",
            "must evaluate to string but got int",
        ),
        (
            {"validations": [rule("variables.zz == 1")]},
            "spec.validations[0].expression",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')\n"
            " | variables.zz == 1\n | ^",
        ),
        (
            {"variables": [rule("variables.later", name="first"), rule("1", name="later")]},
            "spec.variables[0].expression",
            "compilation failed: ERROR: <input>:1:10: undefined field 'later'\n | variables.later\n | .........^",
        ),
        (
            {"matchConditions": [rule("1", name="c")]},
            "spec.matchConditions[0].expression",
            "must evaluate to bool but got int",
        ),
        (
            {"auditAnnotations": [{"key": "k", "valueExpression": "object.x"}]},
            "spec.auditAnnotations[0].valueExpression",
            "must evaluate to one of [string null_type] but got dyn",
        ),
        (
            {"validations": [rule("true", messageExpression="authorizer.path('/').check('get').reason()")]},
            "spec.validations[0].messageExpression",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n"
            " | authorizer.path('/').check('get').reason()\n | ^",
        ),
    ],
)
async def test_expressions_that_do_not_compile_are_refused_with_field_and_reason(
    spec: dict[str, Any], field: str, fault: str
) -> None:
    assert await faults(POLICY, spec=spec) == [(field, fault)]


async def test_every_fault_is_reported() -> None:
    spec = {"validations": [rule("object.x ==", messageExpression="1")]}
    assert [field for field, _ in await faults(POLICY, spec=spec)] == [
        "spec.validations[0].expression",
        "spec.validations[0].messageExpression",
    ]


@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
async def test_the_conditions_of_webhooks_are_checked_too(kind: str) -> None:
    webhooks = [{"matchConditions": []}, {"matchConditions": [rule("true", name="a"), rule("params.x", name="b")]}]
    [(field, fault)] = await faults(kind, webhooks=webhooks)
    assert field == "webhooks[1].matchConditions[1].expression"
    assert "undeclared reference to 'params'" in fault


async def test_an_update_that_keeps_invalid_expressions_is_accepted() -> None:
    spec = {"validations": [rule("'a'")]}
    await check(POLICY, old={"metadata": {}, "spec": spec}, spec=spec)
