"""The admission policy that holds stamped pods to their class inside the API server, without any webhook."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.builders.applications import ZONE
from tests.builders.placements import affinity_class_body, terms

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.definition import AFFINITY_CLASS
from nodeyard.capabilities.affinity.policies import NET, policies
from nodeyard.testing import foreign
from nodeyard.testing.session import Session
from nodeyard.testing.waiting import until

GROUP = "/apis/admissionregistration.k8s.io/v1"
CLASSES = f"/apis/{names.API_VERSION}/{names.CLASS_PLURAL}"
PLURALS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
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


def stamped(stamp, spec=None, name="p"):
    labels = {names.AFFINITY_CLASS: stamp} if stamp else {}
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": containers, **(spec or {})}}


class Held:
    """Namespaces where the policy holds, and classes that are called after them."""

    def __init__(self, http: Session, name: str) -> None:
        self.http = http
        self.name = name

    def called(self, stamp):
        return f"{self.name}-{stamp}" if stamp else ""

    def create(self, stamp, spec=None, *, namespace=""):
        path = f"/api/v1/namespaces/{namespace or self.name}/pods"
        return self.http.post(path, stamped(self.called(stamp), spec), query=DRY)


@pytest.fixture(scope="module")
def held(api):
    http = Session(api.url, api.authority.pem, api.admin_token)
    foreign.install(api.rest, [AFFINITY_CLASS.render()])
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
    for each in policies("system:serviceaccount:nodeyard-system:nodeyard"):
        assert http.post(f"{GROUP}/{PLURALS[each['kind']]}", each).status == 201
    until(lambda: all(found.create(each).status == 403 for each in ("dc1", "two", "lenient")), "the policy holds")
    yield found
    for plural in PLURALS.values():
        http.delete(f"{GROUP}/{plural}/{NET}")
    until(lambda: found.create("dc1").status == 201, "the policy is gone")
    for each in KINDS:
        http.delete(f"{CLASSES}/{found.called(each)}")
    for space in spaces:
        http.delete(f"/api/v1/namespaces/{space}")


def test_a_stamped_pod_is_held_to_its_class(held):
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


def test_a_class_without_a_node_selector_refuses_nobody(held):
    assert held.create("either").status == 201


@pytest.mark.parametrize("stamp", ["", "missing"], ids=["no stamp", "a class that is not there"])
def test_what_it_cannot_see_passes(held, stamp):
    assert held.create(stamp).status == 201


def test_a_class_that_only_warns_is_left_to_the_webhook(held):
    assert held.create("warns").status == 201


def test_a_namespace_weakens_where_the_class_permits_it(held):
    lenient = f"{held.name}-lenient"

    assert held.create("lenient", namespace=lenient).status == 201
    assert held.create("dc1", namespace=lenient).status == 403


def test_namespaces_of_the_system_are_left_alone(held):
    assert held.create("dc1", namespace=f"{held.name}-system").status == 201


def test_pods_that_run_can_be_changed_whatever_their_class_says(held):
    path = f"/api/v1/namespaces/{held.name}/pods"
    assert held.http.post(path, stamped("", name="running")).status == 201

    change = {"metadata": {"labels": {names.AFFINITY_CLASS: held.called("dc1")}}}
    assert held.http.patch(f"{path}/running", change).status == 200
