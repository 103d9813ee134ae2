"""Inputs of a ValidatingAdmissionPolicy beyond the object: the authorizer, and parameters."""

from __future__ import annotations

import pytest


@pytest.fixture
def bob(api, namespace, fresh):
    """A user who may write and approve ConfigMaps in the namespace; `headers` impersonate them."""
    name = fresh("bob")
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "update", "get", "approve"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": ["web"], "verbs": ["patch"]},
    ]
    api.user(name, rules=rules, namespace=namespace)
    return {"Impersonate-User": name}


def configmap(name: str, **data: str) -> dict:
    return {"metadata": {"name": name}, "data": data}


# authorizer


CHECKS = {
    "own-right": ("authorizer.group('').resource('configmaps').namespace('{ns}').check('create').allowed()", True),
    "no-right": ("authorizer.group('').resource('secrets').namespace('{ns}').check('get').allowed()", False),
    "elsewhere": ("authorizer.group('').resource('configmaps').namespace('default').check('get').allowed()", False),
    "own-verb": ("authorizer.requestResource.check('approve').allowed()", True),
    "another-verb": ("authorizer.requestResource.check('delete').allowed()", False),
    "named": ("{scale}.name('web').check('patch').allowed()", True),
    "another-name": ("{scale}.name('db').check('patch').allowed()", False),
    "no-name": ("{scale}.check('patch').allowed()", False),
    "path": ("authorizer.path('/healthz').check('get').allowed()", True),
    "another-path": ("authorizer.path('/metrics').check('get').allowed()", False),
    "account": ("authorizer.serviceAccount('{ns}', 'x').group('').resource('pods').check('get').allowed()", False),
    "reason": ("authorizer.requestResource.check('approve').reason().startsWith('RBAC: allowed by')", True),
    "error": ("authorizer.requestResource.check('approve').errored()", False),
    "variable": ("variables.may", True),
}
"""Authorizer checks about bob by the name of the ConfigMap that he writes, and their results."""

SCALE = "authorizer.group('apps').resource('deployments').subresource('scale').namespace('{ns}')"


def test_a_policy_can_use_the_authorizer(http, configmaps, enforce, namespace, bob):
    checks = {name: check.replace("{scale}", SCALE).replace("{ns}", namespace) for name, (check, _) in CHECKS.items()}
    enforce(
        *(
            {"expression": f"object.metadata.name != '{name}' || {check}", "message": f"no: {name}"}
            for name, check in checks.items()
        ),
        variables=[{"name": "may", "expression": "authorizer.requestResource.check('approve').allowed()"}],
    )

    answers = {name: http.post(configmaps, configmap(name), headers=bob) for name in CHECKS}

    assert {name: answer.status for name, answer in answers.items()} == {
        name: 201 if is_allowed else 422 for name, (_, is_allowed) in CHECKS.items()
    }
    assert answers["no-right"].message.endswith("denied request: no: no-right")


def test_match_conditions_may_use_the_authorizer_too(http, configmaps, enforce, bob):
    enforce(
        {"expression": "false", "message": "not for those who may delete"},
        matchConditions=[{"name": "may", "expression": "authorizer.requestResource.check('delete').allowed()"}],
    )

    assert http.post(configmaps, configmap("a"), headers=bob).status == 201
    assert http.post(configmaps, configmap("b")).status == 422


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            {"validations": [{"expression": "authorizer.serviceAccount('a', 'b').requestResource"}]},
            "spec.validations[0].expression",
        ),
        (
            {
                "validations": [
                    {"expression": "true", "messageExpression": "authorizer.requestResource.check('x').reason()"}
                ]
            },
            "spec.validations[0].messageExpression",
        ),
        (
            {
                "validations": [{"expression": "true"}],
                "variables": [{"name": "v", "expression": "true"}],
                "matchConditions": [{"name": "m", "expression": "variables.v"}],
            },
            "spec.matchConditions[0].expression",
        ),
        ({"validations": [{"expression": "params.x == 'y'"}]}, "spec.validations[0].expression"),
    ],
    ids=["no such field", "authorizer in a message", "variables in a condition", "params without their kind"],
)
def test_policies_with_invalid_rules_are_refused(http, spec, field):
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    body = {"metadata": {"name": "faulty"}, "spec": {"matchConstraints": {"resourceRules": rules}, **spec}}

    answer = http.post("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", body)

    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.causes]


# parameters


@pytest.fixture
def limits(http, gadgets, namespace):
    """The collection that the parameters are in.

    Custom objects, because kube-apiserver goes on seeing ConfigMaps as they were when the last binding with such
    parameters was deleted: https://github.com/kubernetes/kubernetes/issues/130887
    """
    return f"/apis/{gadgets}/v1/namespaces/{namespace}/gadgets"


@pytest.fixture
def limited(http, gadgets, limits, enforce, eventually):
    """A policy that limits the number of keys of a ConfigMap by its parameters."""

    def limit(reference: dict, *params: dict) -> str:
        eventually(lambda: http.get(limits).status == 200, "the kind is served")
        for param in params:
            sent = {"apiVersion": f"{gadgets}/v1", "kind": "Gadget", **param}
            assert http.post(limits, sent).status == 201
        return enforce(
            {"expression": "size(object.data) <= params.spec.max", "message": "too much data"},
            paramKind={"apiVersion": f"{gadgets}/v1", "kind": "Gadget"},
            matchConditions=[
                {"name": "has-data", "expression": "has(object.data) || object.metadata.name == 'canary'"}
            ],
            binding={"paramRef": reference},
        )

    return limit


def param(name: str, most: int, **labels: str) -> dict:
    return {"metadata": {"name": name, "labels": labels}, "spec": {"max": most}}


SELECTED = {"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"}


def test_every_parameter_that_is_selected_must_be_met(http, configmaps, limited, eventually):
    limited(SELECTED, param("wide", 3, limits="yes"), param("narrow", 2, limits="yes"), param("other", 1, limits="no"))

    two = configmap("two", a="1", b="2")
    eventually(lambda: tried(http, configmaps, two) == 201, "the parameters are found")
    assert http.post(configmaps, configmap("three", a="1", b="2", c="3")).status == 422


def test_selected_parameters_are_added_and_removed(http, configmaps, limits, limited, eventually):
    limited(SELECTED, param("wide", 3, limits="yes"), param("narrow", 1, limits="no"))
    three = configmap("three", a="1", b="2", c="3")
    eventually(lambda: tried(http, configmaps, three) == 201, "the parameters are found")

    http.patch(f"{limits}/narrow", {"metadata": {"labels": {"limits": "yes"}}})
    eventually(lambda: tried(http, configmaps, three) == 422, "the new parameter counts")
    http.delete(f"{limits}/narrow")
    eventually(lambda: tried(http, configmaps, three) == 201, "it no longer counts")


def tried(http, configmaps: str, obj: dict) -> int:
    return http.post(configmaps, obj, query={"dryRun": "All"}).status


@pytest.mark.parametrize(
    "reference",
    [{"name": "missing"}, {"selector": {"matchLabels": {"limits": "none"}}}],
    ids=["by name", "by selector"],
)
def test_without_parameters_the_write_is_denied_if_so_asked(http, configmaps, limited, reference):
    name = limited({**reference, "parameterNotFoundAction": "Deny"})

    answer = http.post(configmaps, configmap("a", k="v"))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message == (
        f"configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: "
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    )


@pytest.mark.parametrize(
    "reference",
    [{"name": "limits"}, {"selector": {"matchLabels": {"limits": "yes"}}}],
    ids=["by name", "by selector"],
)
def test_without_parameters_the_write_passes_if_so_asked(http, configmaps, limits, limited, reference, eventually):
    limited({**reference, "parameterNotFoundAction": "Allow"}, param("limits", 1, limits="yes"))
    large = configmap("large", a="1", b="2")
    assert tried(http, configmaps, large) == 422

    http.delete(f"{limits}/limits")

    eventually(lambda: tried(http, configmaps, large) == 201, "nothing limits it any more")


def test_a_missing_kind_of_parameter_is_a_fault_of_the_policy(http, configmaps, enforce):
    name = enforce(
        {"expression": "params != null"},
        paramKind={"apiVersion": "nowhere.example.com/v1", "kind": "Nothing"},
        binding={"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}},
    )

    answer = http.post(configmaps, configmap("a"))

    assert answer.status == 422
    assert f"ValidatingAdmissionPolicy '{name}'" in answer.message
    assert "failed to find resource referenced by paramKind: 'nowhere.example.com/v1, Kind=Nothing'" in answer.message


# versions


@pytest.mark.parametrize(("policy", "status"), [("Equivalent", 422), ("Exact", 201)])
def test_a_policy_for_one_version_covers_the_others_if_so_asked(enforce, gadgets, make_gadget, policy, status):
    rule = {"apiVersions": ["v1"], "operations": ["CREATE"]}
    rules = [
        {**rule, "apiGroups": [""], "resources": ["configmaps"]},
        {**rule, "apiGroups": [gadgets], "resources": ["gadgets"]},
    ]
    enforce(
        {"expression": "object.kind != 'Gadget' || object.apiVersion.endsWith('/v2')", "message": "seen as v1"},
        matchConstraints={"resourceRules": rules, "matchPolicy": policy},
    )

    assert make_gadget("v2", "two").status == status
    assert make_gadget("v1", "one").status == 422
