"""The server stores the objects planned for tenants unchanged, and the next plan is empty.

No operator runs: the test plans from the server's objects and sends the requests.
"""

import msgspec
import pytest
from tests.builders.tenants import NOW, done, planned, reasons, snapshot, tenant_body, values_of

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.definition import TENANT
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.tenants import status_tenants
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.kube.objects import Namespace
from nodeyard.plan.model import Verb
from nodeyard.testing import third_party_crds
from nodeyard.testing.rest import RestError
from nodeyard.testing.session import APPLY, MERGE

TENANTS = "/apis/apps.cozystack.io/v1alpha1"
APPLYING = f"?fieldManager={names.MANAGER}&force=true&fieldValidation=Strict"
SEED = {"defaultAffinityClass": "dc1", "allowedAffinityClasses": ["dc1", "dc2"], "ingress": True}


class Tenancy:
    """The tenants of one test below a unique one, and the application of their plans."""

    def __init__(self, rest, first):
        self.rest = rest
        self.first = first
        self.top = f"tenant-{first}"
        third_party_crds.install(rest, [TENANT.render()])
        rest.replace_or_create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.TENANT_ROOT}})

    def create(self, path, spec=None):
        body = tenant_body(path, spec)
        metadata = {name: body["metadata"][name] for name in ("name", "namespace")}
        return self.rest.create({**body, "metadata": metadata})

    def tenant(self, path):
        metadata = tenant_body(path)["metadata"]
        return self.rest.get(f"{TENANTS}/namespaces/{metadata['namespace']}/tenants/{metadata['name']}")

    def change(self, path, spec):
        metadata = tenant_body(path)["metadata"]
        target = f"{TENANTS}/namespaces/{metadata['namespace']}/tenants/{metadata['name']}"
        self.rest.call("PATCH", target, {"spec": spec}, content_type=MERGE)

    def delete(self, path):
        metadata = tenant_body(path)["metadata"]
        self.rest.call("DELETE", f"{TENANTS}/namespaces/{metadata['namespace']}/tenants/{metadata['name']}")

    def clear(self):
        """No operator removes their finalizers, and the classes that they name could not be deleted."""
        for tenant in self.rest.get(f"{TENANTS}/tenants")["items"]:
            where, name = tenant["metadata"]["namespace"], tenant["metadata"]["name"]
            if where.startswith(self.top) or (where, name) == (names.TENANT_ROOT, self.first):
                target = f"{TENANTS}/namespaces/{where}/tenants/{name}"
                self.rest.call("PATCH", target, {"metadata": {"finalizers": None}}, content_type=MERGE)
                if self.rest.exists(target):
                    self.rest.call("DELETE", target)

    def world(self):
        found = [msgspec.convert(each, Tenant) for each in self.rest.get(f"{TENANTS}/tenants")["items"]]
        spaces = [msgspec.convert(each, Namespace) for each in self.rest.get("/api/v1/namespaces")["items"]]
        query = f"?fieldSelector=metadata.name%3D{names.VALUES_SECRET}"
        secrets = self.rest.get(f"/api/v1/secrets{query}")["items"]
        ours = [each for each in found if each.own_namespace.startswith(self.top)]
        return snapshot(*ours, namespaces=spaces, secrets=secrets)

    def carry_out(self, found):
        for action in found.plan.actions:
            ref, write = action.object, found.write(action)
            body = write.body
            base = self.rest.collection({"apiVersion": ref.api_version, "kind": ref.kind, "metadata": _place(ref)})
            target = f"{base}/{ref.name}"
            if action.verb is Verb.APPLY:
                self.rest.call("PATCH", f"{target}{APPLYING}", body, content_type=APPLY)
            elif action.verb is Verb.PATCH:
                version = {"resourceVersion": write.resource_version}
                self.rest.call("PATCH", target, {"metadata": {**body["metadata"], **version}}, content_type=MERGE)
            else:
                bound = {"uid": ref.uid, "resourceVersion": write.resource_version}
                self.rest.call("DELETE", target, {"preconditions": bound})

    def serve(self):
        """Plan and apply until nothing is left to do."""
        for _ in range(6):
            found = planned(self.world())
            if not found.plan.actions:
                return found
            self.carry_out(found)
        raise AssertionError(done(planned(self.world())))

    def namespace(self, name):
        return self.rest.get(f"/api/v1/namespaces/{name}")

    def values(self, namespace):
        return self.rest.get(f"/api/v1/namespaces/{namespace}/secrets/{names.VALUES_SECRET}")

    def is_gone(self, path):
        try:
            self.tenant(path)
        except RestError as error:
            return error.status == 404
        return False


def _place(ref):
    return {"namespace": ref.namespace} if ref.namespace else {}


@pytest.fixture
def tenancy(api, request):
    number = sum(request.node.originalname.encode())
    tenancy = Tenancy(api.rest, f"objects{number}")
    yield tenancy
    tenancy.clear()


def test_namespaces_and_values_are_taken_as_planned_and_planned_no_more(tenancy):
    first, web = tenancy.first, f"{tenancy.first}/web"
    tenancy.create(first, SEED)
    tenancy.serve()
    tenancy.create(web, {"allowedAffinityClasses": ["dc1"]})
    assert reasons(tenancy.serve()) == []
    own, inner = tenancy.namespace(tenancy.top), tenancy.namespace(f"{tenancy.top}-web")
    assert inner["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "name": tenancy.top,
            "uid": own["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    ancestors = {label for label in inner["metadata"]["labels"] if label.startswith(names.ANCESTOR_PREFIX)}
    assert ancestors == {
        f"{names.ANCESTOR_PREFIX}{each}" for each in ("tenant-root", tenancy.top, f"{tenancy.top}-web")
    }
    assert inner["metadata"]["labels"]["namespace.cozystack.io/ingress"] == tenancy.top
    secret = tenancy.values(f"{tenancy.top}-web")
    assert secret["type"] == "Opaque"
    assert secret["metadata"]["labels"] == {"reconcile.fluxcd.io/watch": "Enabled"}
    said = values_of(secret)["_namespace"]
    assert (said["defaultAffinityClass"], said["allowedAffinityClasses"]) == ("dc1", ["dc1"])


def test_a_change_is_written_once_and_foreign_fields_stay(tenancy):
    tenancy.create(tenancy.first, SEED)
    tenancy.serve()
    theirs = {"metadata": {"labels": {"theirs": "x"}, "annotations": {"theirs": "y"}}}
    secret = f"/api/v1/namespaces/{tenancy.top}/secrets/{names.VALUES_SECRET}"
    tenancy.rest.call("PATCH", f"/api/v1/namespaces/{tenancy.top}", theirs, content_type=MERGE)
    tenancy.rest.call("PATCH", secret, {**theirs, "data": {"other": "eA=="}}, content_type=MERGE)
    assert done(planned(tenancy.world())) == []
    tenancy.change(tenancy.first, {"allowedAffinityClasses": ["dc1"], "etcd": True})
    assert done(planned(tenancy.world())) == [
        f"Apply Namespace/{tenancy.top}",
        f"Apply Secret/{tenancy.top}/cozystack-values",
    ]
    tenancy.serve()
    live, held = tenancy.namespace(tenancy.top), tenancy.values(tenancy.top)
    assert live["metadata"]["labels"]["theirs"] == held["metadata"]["labels"]["theirs"] == "x"
    assert live["metadata"]["labels"]["namespace.cozystack.io/etcd"] == tenancy.top
    assert held["data"]["other"] == "eA=="
    assert values_of(held)["_namespace"]["allowedAffinityClasses"] == ["dc1"]


def test_overwritten_values_are_restored(tenancy):
    tenancy.create(tenancy.first, SEED)
    tenancy.serve()
    before = tenancy.values(tenancy.top)["data"]
    secret = f"/api/v1/namespaces/{tenancy.top}/secrets/{names.VALUES_SECRET}"
    tenancy.rest.call("PATCH", secret, {"data": {names.VALUES_KEY: "eA=="}}, content_type=MERGE)
    tenancy.serve()
    assert tenancy.values(tenancy.top)["data"] == before


def test_a_status_is_stored_completely_and_not_written_again(tenancy):
    tenancy.create(tenancy.first, {**SEED, "defaultAffinityClass": "dc2"})
    tenancy.serve()
    write = _status(tenancy)
    target = f"{TENANTS}/namespaces/tenant-root/tenants/{tenancy.first}/status?fieldValidation=Strict"
    tenancy.rest.call("PATCH", target, {"status": write.status}, content_type=MERGE)
    assert tenancy.tenant(tenancy.first)["status"] == write.status
    assert write.status["namespace"] == tenancy.top
    assert _status(tenancy) is None


def _status(tenancy):
    world = tenancy.world()
    found = planned(world)
    results = tuple(ActionResult(action=each, result=Result.DONE) for each in found.plan.actions)
    return next(iter(status_tenants(world, found.plan, Outcome(results=results), NOW)), None)


def test_a_foreign_namespace_is_unchanged(tenancy):
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tenancy.top}}
    before = tenancy.rest.create(body)
    tenancy.create(tenancy.first)
    assert reasons(tenancy.serve()) == [Reason.NAME_CONFLICT]
    assert tenancy.namespace(tenancy.top)["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    handed = {"metadata": {"annotations": {names.TENANT: tenancy.tenant(tenancy.first)["metadata"]["uid"]}}}
    tenancy.rest.call("PATCH", f"/api/v1/namespaces/{tenancy.top}", handed, content_type=MERGE)
    assert reasons(tenancy.serve()) == []


def test_a_tenant_goes_after_those_in_it_and_its_namespace_before_it(tenancy, eventually):
    first, web = tenancy.first, f"{tenancy.first}/web"
    tenancy.create(first, SEED)
    tenancy.serve()
    tenancy.create(web)
    tenancy.serve()
    tenancy.delete(first)
    assert reasons(tenancy.serve()) == [Reason.TENANT_IN_USE]
    tenancy.delete(web)

    def is_gone():
        tenancy.serve()
        return tenancy.is_gone(first)

    eventually(is_gone, "the tenant is gone", timeout=60)
    assert not {tenancy.top, f"{tenancy.top}-web"} & tenancy.world().namespaces.keys()


def test_a_namespace_that_changed_since_it_was_looked_at_is_not_deleted(tenancy):
    tenancy.create(tenancy.first, SEED)
    tenancy.serve()
    tenancy.delete(tenancy.first)
    found = planned(tenancy.world())
    assert done(found) == [f"Delete Namespace/{tenancy.top}"]
    theirs = {"metadata": {"annotations": {names.TENANT: "somebody-else"}}}
    tenancy.rest.call("PATCH", f"/api/v1/namespaces/{tenancy.top}", theirs, content_type=MERGE)
    with pytest.raises(RestError) as refused:
        tenancy.carry_out(found)
    assert refused.value.status == 409
    assert done(planned(tenancy.world())) == [f"Patch Tenant/tenant-root/{tenancy.first}#finalizer"]
