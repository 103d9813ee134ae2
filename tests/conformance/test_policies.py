"""ValidatingAdmissionPolicy: CEL that denies, warns or audits."""

from __future__ import annotations

import pytest

GROUP = "/apis/admissionregistration.k8s.io/v1"


def test_a_violation_names_policy_and_binding(http, configmaps, enforce):
    name = enforce({"expression": "has(object.data) && object.data.k == 'v'", "message": "k must be v"})

    good = http.post(configmaps, {"metadata": {"name": "good"}, "data": {"k": "v"}})
    bad = http.post(configmaps, {"metadata": {"name": "bad"}, "data": {"k": "w"}})

    assert good.status == 201
    assert (bad.status, bad.reason) == (422, "Invalid")
    assert bad.message == (
        f"configmaps \"bad\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: "
        "k must be v"
    )


def test_an_update_is_compared_with_the_old_object(http, configmaps, enforce):
    enforce({"expression": "oldObject == null || oldObject.data.k == object.data.k", "message": "k stays"})
    http.post(configmaps, {"metadata": {"name": "a"}, "data": {"k": "v"}})

    assert http.patch(f"{configmaps}/a", {"data": {"other": "x"}}).status == 200
    assert http.patch(f"{configmaps}/a", {"data": {"k": "w"}}).status == 422


def test_a_message_can_be_computed_and_a_reason_chosen(http, configmaps, enforce):
    enforce(
        {
            "expression": "size(object.metadata.name) < 5",
            "messageExpression": "'name ' + object.metadata.name + ' is long'",
            "reason": "Forbidden",
        }
    )

    answer = http.post(configmaps, {"metadata": {"name": "lengthy"}})

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message.endswith("denied request: name lengthy is long")


def test_variables_are_shared(http, configmaps, enforce):
    enforce(
        {"expression": "variables.tier in ['web', 'db']", "message": "unknown tier"},
        variables=[
            {"name": "labels", "expression": "has(object.metadata.labels) ? object.metadata.labels : {}"},
            {"name": "tier", "expression": "'tier' in variables.labels ? variables.labels['tier'] : 'web'"},
        ],
    )

    assert http.post(configmaps, {"metadata": {"name": "a", "labels": {"tier": "db"}}}).status == 201
    assert http.post(configmaps, {"metadata": {"name": "b", "labels": {"tier": "moon"}}}).status == 422


def test_a_policy_can_read_the_user(http, configmaps, enforce):
    enforce({"expression": "request.userInfo.username != 'admin'", "message": "not you"})

    assert http.post(configmaps, {"metadata": {"name": "a"}}).message.endswith("denied request: not you")


def test_parameters_come_from_an_object(http, configmaps, enforce, namespace, eventually):
    http.post(configmaps, {"metadata": {"name": "limits"}, "data": {"max": "2"}})
    enforce(
        {"expression": "!has(object.data) || size(object.data) <= int(params.data.max)", "message": "too much data"},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        binding={"paramRef": {"name": "limits", "namespace": namespace, "parameterNotFoundAction": "Deny"}},
    )

    small = {"metadata": {"name": "a"}, "data": {"a": "1", "b": "2"}}
    eventually(lambda: http.post(configmaps, small, query={"dryRun": "All"}).status == 201, "the parameters are found")
    assert http.post(configmaps, small).status == 201
    assert http.post(configmaps, {"metadata": {"name": "b"}, "data": {"a": "1", "b": "2", "c": "3"}}).status == 422


def test_a_warning_lets_the_write_pass(http, configmaps, enforce):
    name = enforce({"expression": "object.metadata.name != 'odd'", "message": "odd name"}, actions=["Warn"])

    answer = http.post(configmaps, {"metadata": {"name": "odd"}})

    assert answer.status == 201
    assert answer.warnings == [
        f"299 - \"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': odd name\""
    ]


def test_a_failing_expression_denies_if_the_failure_policy_is_fail(http, configmaps, enforce):
    enforce({"expression": "object.data.missing == 'x'"})

    answer = http.post(configmaps, {"metadata": {"name": "a"}, "data": {"k": "v"}})

    assert answer.status == 422
    assert "no such key: missing" in answer.message


def test_match_conditions_narrow_a_policy(http, configmaps, enforce):
    enforce(
        {"expression": "object.metadata.name == 'canary'", "message": "nothing allowed"},
        matchConditions=[
            {
                "name": "marked",
                "expression": "object.metadata.name.startsWith('x-') || object.metadata.name == 'canary'",
            }
        ],
    )

    assert http.post(configmaps, {"metadata": {"name": "a"}}).status == 201
    assert http.post(configmaps, {"metadata": {"name": "x-a"}}).status == 422


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"validations": [{"expression": "object."}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "undeclared == 1"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "1 + 1"}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": ""}]}, "spec.validations[0].expression"),
        ({"failurePolicy": "Maybe", "validations": [{"expression": "true"}]}, "spec.failurePolicy"),
    ],
    ids=["syntax", "undeclared", "not a bool", "empty", "failure policy"],
)
def test_a_faulty_policy_is_refused(http, spec, field):
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    body = {"metadata": {"name": "faulty"}, "spec": {"matchConstraints": {"resourceRules": rules}, **spec}}

    answer = http.post(f"{GROUP}/validatingadmissionpolicies", body)

    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.causes]
