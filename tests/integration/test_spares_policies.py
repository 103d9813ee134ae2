"""The admission policy protects nodes against everyone but the operator."""

from __future__ import annotations

import json

import pytest
from tests.builders.spares_env import ENV_LABEL, labels

from nodeyard.capabilities.spares.names import RECORD_DIGEST
from nodeyard.capabilities.spares.planning.node_patch import digest_of
from nodeyard.capabilities.spares.webhook import GUARD, policies
from nodeyard.testing.session import MERGE, Session
from nodeyard.testing.users import grant

OPERATOR = "system:serviceaccount:nodeyard-system:nodeyard"
GROUP = "/apis/admissionregistration.k8s.io/v1"
LABEL = "nyallocator.cybozu.io/node-template"


@pytest.fixture
def http(api) -> Session:
    return Session(api.url, api.authority.pem, api.admin_token)


@pytest.fixture
def guarded(http, eventually):
    """A node that the policy protects."""
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
def test_only_the_operator_may_change_the_ownership_label(http, guarded, subresource, value):
    answer = http.patch(f"{guarded}{subresource}", {"metadata": {"labels": {LABEL: value}}})

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert f"the label {LABEL} belongs to Nodeyard" in answer.message


def test_only_the_operator_may_change_the_record(http, guarded):
    answer = http.patch(guarded, {"metadata": {"annotations": {"nodeyard.dev/spares-record": "{}"}}})

    assert answer.status == 403


def test_all_other_keys_may_be_changed(http, guarded):
    change = {"metadata": {"labels": {"free": "no"}, "annotations": {"note": "x"}}, "spec": {"unschedulable": True}}

    assert http.patch(guarded, change).status == 200


def test_the_operator_may(http, guarded):
    headers = {"Impersonate-User": OPERATOR, "Impersonate-Group": "system:masters"}

    answer = http.patch(guarded, {"metadata": {"labels": {LABEL: "other"}}}, MERGE, headers=headers)

    assert answer.status == 200


# kubelets

RECORD = "nodeyard.dev/spares-record"
KUBELET_RULE = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["create", "patch"]}


@pytest.fixture
def kubelet(api, http):
    """The name of a node and the impersonation headers of its kubelet."""
    name = "env-kubelet"
    user = f"system:node:{name}"
    grant(api.rest, user, [KUBELET_RULE], None)
    yield name, {"Impersonate-User": user, "Impersonate-Group": "system:nodes"}
    http.delete(f"/api/v1/nodes/{name}")


@pytest.mark.parametrize(
    "metadata",
    [{"labels": {LABEL: "vault"}}, {"annotations": {RECORD: '{"template":"vault"}'}}],
    ids=["label", "record"],
)
def test_a_kubelet_cannot_register_or_mark_its_node_as_a_templates(http, guarded, kubelet, metadata):
    name, headers = kubelet
    body = {"metadata": {"name": name, **metadata}}

    registered = http.post("/api/v1/nodes", body, headers=headers)

    assert (registered.status, registered.reason) == (403, "Forbidden")
    assert "belongs to Nodeyard" in registered.message
    spare = {"metadata": {"name": name}, "spec": {"taints": [{"key": "node.cybozu.io/spare", "effect": "NoSchedule"}]}}
    assert http.post("/api/v1/nodes", spare, headers=headers).status == 201
    marked = http.patch(f"/api/v1/nodes/{name}", {"metadata": metadata}, MERGE, headers=headers)
    assert marked.status == 403
    assert "belongs to Nodeyard" in marked.message


def test_an_administrator_creates_nodes_with_the_label(http, guarded, kubelet):
    name, _ = kubelet

    assert http.post("/api/v1/nodes", {"metadata": {"name": name, "labels": {LABEL: "vault"}}}).status == 201


# without the policy


def test_a_node_that_merely_carries_the_label_gets_no_restricted_labels_and_no_place(spares_env, operator, eventually):
    vault = "node-restriction.kubernetes.io/vault"
    claimed = spares_env.spare("claimed")
    operator("spares")
    web = spares_env.template("web", 1, template={"metadata": {"labels": {vault: "true", "team": "web"}}})
    spares_env.wait_for_owned(web, 1)
    assert labels(spares_env.get_node(claimed))[vault] == "true"

    intruder = spares_env.node("a-intruder", **{LABEL: web})

    spares_env.wait_for_event(web, "NotAdopted")
    eventually(
        lambda: spares_env.get_template(web)["status"].get("refusals") == {"NotAdopted": 1}, "the status counts it"
    )
    assert spares_env.get_template(web)["status"]["currentNodes"] == 1
    assert labels(spares_env.get_node(intruder)).keys().isdisjoint({vault, "team"})

    spares_env.change(web, nodes=2)

    spares_env.wait_for_owned(web, 2)
    eventually(lambda: labels(spares_env.get_node(intruder)).get("team") == "web", "it is adopted")
    assert vault not in labels(spares_env.get_node(intruder))
    spares_env.wait_for_event(web, "RestrictedLabelsWithheld")


def test_a_record_that_a_kubelet_forges_gives_no_restricted_labels_and_no_place(
    api, spares_env, operator, eventually, http, kubelet
):
    vault = "node-restriction.kubernetes.io/vault"
    operator("spares")
    web = spares_env.template("web", 1, template={"metadata": {"labels": {vault: "true", "team": "web"}}})
    spares_env.spare("claimed")
    spares_env.wait_for_owned(web, 1)
    name, headers = kubelet
    record = json.dumps({"template": web, "labels": {LABEL: web}})
    own = {LABEL: web, ENV_LABEL: spares_env.name}
    metadata = {"name": name, "labels": own, "annotations": {RECORD: record}}
    if api.is_real:
        # The digest label is out of its reach by NodeRestriction, which the embedded server lacks.
        with_seal = {**metadata, "labels": {**own, RECORD_DIGEST: digest_of(record)}}
        assert http.post("/api/v1/nodes", {"metadata": with_seal}, headers=headers).status == 403

    assert http.post("/api/v1/nodes", {"metadata": metadata}, headers=headers).status == 201

    spares_env.wait_for_event(web, "NotAdopted")
    spares_env.change(web, nodes=2)
    spares_env.wait_for_owned(web, 2)
    eventually(lambda: labels(spares_env.get_node(name)).get("team") == "web", "it is adopted")
    for forged in (record, None):
        change = {"metadata": {"annotations": {RECORD: forged}}}
        assert http.patch(f"/api/v1/nodes/{name}", change, MERGE, headers=headers).status == 200
        eventually(
            lambda: json.loads(spares_env.get_node(name)["metadata"].get("annotations", {}).get(RECORD, "{}")).get(
                "adopted"
            ),
            "the record says again that it was adopted",
        )
        assert vault not in labels(spares_env.get_node(name))
