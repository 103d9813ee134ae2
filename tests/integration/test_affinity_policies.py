"""The admission policies, without webhooks: labelled pods stay in their class, records are guarded, the operator is
confined."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.builders.applications import ZONE
from tests.builders.placements import affinity_class_body, terms

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.affinity.definition import AFFINITY_CLASS
from nodeyard.capabilities.affinity.webhook import confinement, policies
from nodeyard.runtime import rbac
from nodeyard.testing import third_party_crds
from nodeyard.testing.session import Session
from nodeyard.testing.wait import until

GROUP = "/apis/admissionregistration.k8s.io/v1"
CLASSES = f"/apis/{names.API_VERSION}/{names.CLASS_PLURAL}"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
OPERATOR = "system:serviceaccount:nodeyard-system:nodeyard"
DRY = {"dryRun": "All"}
DC1 = {"nodeSelector": {ZONE: "dc1"}}
TWO = {ZONE: "dc1", "disk": "ssd"}
KINDS = {
    "dc1": affinity_class_body("dc1"),
    "two": affinity_class_body("two", TWO),
    "either": affinity_class_body("either", {}, nodeAffinity=terms((ZONE, "In", ["dc1", "dc2"]))),
    "warns": affinity_class_body("warns", enforcement="Warn"),
    "lenient": affinity_class_body("lenient", allowNamespaceOverride=True),
}


def labelled(class_label, spec=None, name="p"):
    labels = {names.AFFINITY_CLASS: class_label} if class_label else {}
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers, **(spec or {})}}


class Held:
    """Namespaces with the policy, and classes named after them."""

    def __init__(self, http: Session, name: str) -> None:
        self.http = http
        self.name = name

    def called(self, class_label):
        return f"{self.name}-{class_label}" if class_label else ""

    def create(self, class_label, spec=None, *, namespace=""):
        path = f"/api/v1/namespaces/{namespace or self.name}/pods"
        return self.http.post(path, labelled(self.called(class_label), spec), query=DRY)


@pytest.fixture(scope="module")
def held(api):
    http = Session(api.url, api.authority.pem, api.admin_token)
    third_party_crds.install(api.rest, [AFFINITY_CLASS.render()])
    name = f"tenant-{uuid4().hex[:8]}"
    spaces = {
        name: {},
        f"{name}-lenient": {names.ENFORCEMENT: "Audit"},
        f"{name}-system": {names.SYSTEM_NAMESPACE: "true"},
    }
    for space, labels in spaces.items():
        assert http.post("/api/v1/namespaces", {"metadata": {"name": space, "labels": labels}}).status == 201
    found = Held(http, name)
    for each, made in KINDS.items():
        assert http.post(CLASSES, {**made, "metadata": {"name": found.called(each)}}).status == 201
    made = policies(OPERATOR)
    for each in made:
        assert http.post(f"{GROUP}/{PLURALS[each['kind']]}", each).status == 201
    until(lambda: all(found.create(each).status == 403 for each in ("dc1", "two", "lenient")), "the policy holds")
    yield found
    for each in made:
        http.delete(f"{GROUP}/{PLURALS[each['kind']]}/{each['metadata']['name']}")
    until(lambda: found.create("dc1").status == 201, "the policy is gone")
    for each in KINDS:
        http.delete(f"{CLASSES}/{found.called(each)}")
    for space in spaces:
        http.delete(f"/api/v1/namespaces/{space}")


def test_a_labelled_pod_is_held_to_its_class(held):
    assert held.create("dc1", DC1).status == 201
    refused = held.create("dc1", {"nodeSelector": {ZONE: "dc2"}})

    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert refused.message.endswith(
        f'denied request: pod {held.name}/p belongs to application with AffinityClass "{held.called("dc1")}" but '
        f"missing required nodeSelector {ZONE}=dc1"
    )


def test_every_label_of_the_class_counts(held):
    assert held.create("two", {"nodeSelector": TWO}).status == 201
    assert held.create("two", DC1).message.endswith("missing required nodeSelector disk=ssd")


def test_terms_that_all_name_the_value_are_as_good(held):
    assert held.create("dc1", {"affinity": {"nodeAffinity": terms((ZONE, "In", ["dc1"]))}}).status == 201
    either = terms((ZONE, "In", ["dc1"]), ("disk", "In", ["ssd"]))
    assert held.create("dc1", {"affinity": {"nodeAffinity": either}}).status == 403
    assert held.create("dc1", {"affinity": {"nodeAffinity": terms((ZONE, "In", ["dc1", "dc2"]))}}).status == 403


def test_a_class_without_a_node_selector_denies_no_pod(held):
    assert held.create("either").status == 201


@pytest.mark.parametrize("class_label", ["", "missing"], ids=["no class_label", "a class that is not there"])
def test_requests_outside_the_policy_are_admitted(held, class_label):
    assert held.create(class_label).status == 201


def test_a_class_that_only_warns_is_left_to_the_webhook(held):
    assert held.create("warns").status == 201


def test_a_namespace_weakens_where_the_class_permits_it(held):
    lenient = f"{held.name}-lenient"

    assert held.create("lenient", namespace=lenient).status == 201
    assert held.create("dc1", namespace=lenient).status == 403


def test_namespaces_of_the_system_are_left_alone(held):
    assert held.create("dc1", namespace=f"{held.name}-system").status == 201


def test_running_pods_can_be_updated_regardless_of_their_class(held):
    path = f"/api/v1/namespaces/{held.name}/pods"
    assert held.http.post(path, labelled("", name="running")).status == 201

    change = {"metadata": {"labels": {names.AFFINITY_CLASS: held.called("dc1")}}}
    assert held.http.patch(f"{path}/running", change).status == 200


# guards


def release(name, **labels):
    spec = {"interval": "5m", "chartRef": {"kind": "OCIRepository", "name": "x"}}
    return {
        "apiVersion": names.FLUX_API_VERSION,
        "kind": names.RELEASE_KIND,
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


@pytest.mark.parametrize("key", [names.AFFINITY_CLASS, names.PREVIOUS_CLASS])
def test_the_class_labels_of_a_release_are_the_operators(api, affinity_crds, held, key):
    path = f"/apis/{names.FLUX_API_VERSION}/namespaces/{held.name}/{names.RELEASE_PLURAL}"
    name = key.rpartition("/")[2]
    until(lambda: held.http.post(path, release("forged", **{key: ""}), query=DRY).status == 403, "the policy holds")
    by_operator = Session(api.url, api.authority.pem, api.admin_token)

    assert held.http.post(path, release(name, other="x")).status == 201
    refused = held.http.patch(f"{path}/{name}", {"metadata": {"labels": {key: "dc1"}}})
    assert (refused.status, "belongs to Nodeyard: set spec.affinityClass" in refused.message) == (403, True)
    own = {"Impersonate-User": OPERATOR, "Impersonate-Group": "system:masters"}
    assert by_operator.patch(f"{path}/{name}", {"metadata": {"labels": {key: "dc1"}}}, headers=own).status == 200
    assert held.http.patch(f"{path}/{name}", {"metadata": {"labels": {"other": "y"}}}).status == 200
    assert held.http.patch(f"{path}/{name}", {"metadata": {"labels": {key: None}}}).status == 403


def test_the_record_of_an_application_is_the_operators(affinity_crds, held):
    path = f"/apis/{names.APPS_API_VERSION}/namespaces/{held.name}/{names.TENANT_PLURAL}"
    body = {"apiVersion": names.APPS_API_VERSION, "kind": names.TENANT_KIND, "metadata": {"name": "inner"}, "spec": {}}
    assert held.http.post(path, body).status == 201
    record = {"metadata": {"annotations": {names.CLASS_RECORD: "{}"}}}

    refused = until(lambda: _refusal(held.http.patch(f"{path}/inner", record, query=DRY)), "the policy holds")

    assert f"the annotation {names.CLASS_RECORD} belongs to Nodeyard" in refused
    assert held.http.patch(f"{path}/inner", {"metadata": {"annotations": {"other": "x"}}}).status == 200


def _refusal(answer):
    return answer.message if answer.status == 403 else ""


# the operator


def crd(group, **labels):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    word = f"w{uuid4().hex[:8]}"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{word}s.{group}", "labels": labels},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": f"{word}s", "singular": word, "kind": word.title(), "listKind": f"{word.title()}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def test_the_operator_writes_only_definitions_that_are_declared(api):
    """The operator's account with its role, which cannot distinguish CRDs."""
    user = f"operator-{uuid4().hex[:8]}"
    api.user(user, rules=rbac.rules(AFFINITY))
    admin = Session(api.url, api.authority.pem, api.admin_token)
    path, own = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"Impersonate-User": user}
    made = confinement(user)
    for each in made:
        assert admin.post(f"{GROUP}/{PLURALS[each['kind']]}", each).status == 201
    foreign_crd, declared = crd("others.test"), crd(names.APPS_GROUP, **{names.DECLARED_BY: "x"})
    try:
        refused = until(lambda: _refusal(admin.post(path, crd("others.test"), query=DRY, headers=own)), "it holds")
        assert f"affinity writes only CRDs in {names.APPS_GROUP}" in refused
        assert admin.post(path, foreign_crd).status == 201
        theirs = f"{path}/{foreign_crd['metadata']['name']}"
        for change in (
            {"metadata": {"labels": {names.DECLARED_BY: "x"}}},
            {"spec": {"names": {"shortNames": ["own"]}}},
        ):
            assert admin.patch(theirs, change, headers=own).status == 403
        assert admin.delete(theirs, headers=own).status == 403
        undeclared = crd(names.APPS_GROUP)
        assert admin.post(path, undeclared, query=DRY, headers=own).status == 403
        assert admin.post(path, declared, headers=own).status == 201
        mine = f"{path}/{declared['metadata']['name']}"
        assert admin.patch(mine, {"metadata": {"annotations": {"a": "b"}}}, headers=own).status == 200
        assert admin.delete(mine, headers=own).status == 200
        assert admin.patch(theirs, {"metadata": {"annotations": {"a": "b"}}}).status == 200
    finally:
        for each in made:
            admin.delete(f"{GROUP}/{PLURALS[each['kind']]}/{each['metadata']['name']}")
        for each in (foreign_crd, declared):
            admin.delete(f"{path}/{each['metadata']['name']}")
