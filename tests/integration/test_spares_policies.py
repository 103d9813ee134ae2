"""The admission policies that guard nodes: on by everybody, off for the operator."""

from __future__ import annotations

import pytest

from nodeyard.capabilities.spares.policies import GUARD, policies
from nodeyard.testing.session import MERGE, Session

OPERATOR = "system:serviceaccount:nodeyard-system:nodeyard"
GROUP = "/apis/admissionregistration.k8s.io/v1"
LABEL = "nyallocator.cybozu.io/node-template"


@pytest.fixture
def http(api) -> Session:
    return Session(api.url, api.authority.pem, api.admin_token)


@pytest.fixture
def guarded(http, eventually):
    """A node under guard."""
    name = "guarded-node"
    http.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {LABEL: "compute", "free": "yes"}}})
    plurals = {
        "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    }
    for body in policies(OPERATOR):
        assert http.post(f"{GROUP}/{plurals[body['kind']]}", body).status == 201
    path = f"/api/v1/nodes/{name}"
    probe = {"metadata": {"labels": {LABEL: "probe"}}}
    eventually(lambda: http.patch(path, probe, query={"dryRun": "All"}).status == 403, "the policy is enforced")
    yield path
    for plural in plurals.values():
        http.delete(f"{GROUP}/{plural}/{GUARD}")
    eventually(lambda: http.patch(path, probe, query={"dryRun": "All"}).status == 200, "the policy is gone")
    http.delete(path)


@pytest.mark.parametrize("subresource", ["", "/status"], ids=["node", "status"])
@pytest.mark.parametrize("value", ["other", None], ids=["change", "remove"])
def test_nobody_else_touches_the_ownership_label(http, guarded, subresource, value):
    answer = http.patch(f"{guarded}{subresource}", {"metadata": {"labels": {LABEL: value}}})

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert f"the label {LABEL} belongs to Nodeyard" in answer.message


def test_nobody_else_touches_the_record(http, guarded):
    answer = http.patch(guarded, {"metadata": {"annotations": {"nodeyard.dev/spares-record": "{}"}}})

    assert answer.status == 403


def test_everything_else_is_free(http, guarded):
    change = {"metadata": {"labels": {"free": "no"}, "annotations": {"note": "x"}}, "spec": {"unschedulable": True}}

    assert http.patch(guarded, change).status == 200


def test_the_operator_may(http, guarded):
    headers = {"Impersonate-User": OPERATOR, "Impersonate-Group": "system:masters"}

    answer = http.patch(guarded, {"metadata": {"labels": {LABEL: "other"}}}, MERGE, headers=headers)

    assert answer.status == 200
