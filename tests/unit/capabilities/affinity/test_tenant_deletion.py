"""Deletion of a tenant: blocked while it is in use, and its Namespace first."""

from dataclasses import replace

import msgspec
import pytest
from tests.builders.tenants import (
    DELETED,
    NOW,
    deleted,
    done,
    namespace,
    planned,
    reasons,
    secret,
    settled,
    snapshot,
    tenant,
)

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.tenants import status_tenants
from nodeyard.plan.brake import Limit, brake, disrupted_nodes
from nodeyard.plan.model import Disruption

FINALIZER_ACT = "Patch Tenant/tenant-root/acme#finalizer"


def going(*more, **given):
    """Build the snapshot of acme, which was reconciled and is being deleted."""
    served = settled(snapshot(tenant("acme"), secrets=[secret("tenant-root", "")]))
    return replace(served, tenants=[deleted(served.tenants[0]), *more], **given)


def test_first_the_namespace_is_deleted_and_only_in_the_planned_version():
    found = planned(going())
    assert done(found) == ["Delete Namespace/tenant-acme"]
    assert found.plan.actions[0].object.uid == "uid-tenant-acme"


def test_a_namespace_that_goes_counts_for_the_brake():
    (action,) = planned(going()).plan.actions

    assert (action.disruption, action.always_asks) == (Disruption.DELETES, False)
    assert len(disrupted_nodes([action])) == 1


def test_deleting_many_namespaces_waits_for_approval_even_if_they_are_empty():
    names_of = [f"t{number}" for number in range(26)]
    served = settled(snapshot(*map(tenant, names_of), secrets=[secret("tenant-root", "")]))
    found = planned(replace(served, tenants=[deleted(each) for each in served.tenants])).plan

    held = brake(found, Limit(), 0).held

    assert len(held.actions) == 26
    assert brake(msgspec.structs.replace(found, actions=found.actions[:25]), Limit(), 0).held is None


def test_an_uncounted_namespace_is_deleted_without_approval_and_the_text_names_uncounted_kinds():
    (action,) = planned(going()).plan.actions

    assert action.facts.text() == (
        "Deletes Namespace tenant-acme of Tenant tenant-root/acme with everything in it (no PersistentVolumeClaims, "
        "workloads or single pods; Secrets and other kinds are not counted)"
    )


def test_remaining_objects_of_a_namespace_are_reported_and_wait_for_approval():
    left = {"PersistentVolumeClaim": 2, "StatefulSet": 1}
    world = going(left={"tenant-acme": left})
    found = planned(world).plan

    held = brake(found, Limit(), 0)

    assert held.held is not None
    assert held.now.actions == ()
    said = "2 PersistentVolumeClaims, 1 StatefulSet and everything else in it (Secrets and other kinds are not counted)"
    assert said in found.actions[0].facts.text()
    (write,) = status_tenants(world, held.now, Outcome(results=()), NOW)
    (ready,) = (each for each in write.status["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", Reason.NAMESPACE_DELETION_HELD)
    assert said in ready["message"]
    assert f"nodeyard approve {held.held.id}" in ready["message"]
    assert brake(found, Limit(), 0, {held.held.id}).held is None


@pytest.mark.parametrize(
    "later", [{"StatefulSet": 2}, {"StatefulSet": 1, "Pod": 1}, {}], ids=["more", "others", "none"]
)
def test_an_approval_is_for_the_contents_that_it_was_given_for(later):
    held = brake(planned(going(left={"tenant-acme": {"StatefulSet": 1}})).plan, Limit(), 0).held

    now = brake(planned(going(left={"tenant-acme": later})).plan, Limit(), 0, {held.id}).held

    assert (now is None) == (not later)


def test_a_namespace_that_has_changed_meanwhile_is_not_deleted():
    space = namespace("tenant-acme", of="uid-acme")
    found = planned(snapshot(deleted(tenant("acme")), namespaces=[space]))
    assert found.writes["Namespace/tenant-acme"].resource_version == space.metadata.resource_version


def test_while_the_namespace_goes_the_tenant_waits():
    space = namespace("tenant-acme", of="uid-acme", deletionTimestamp=DELETED)
    found = planned(snapshot(deleted(tenant("acme")), namespaces=[space]))
    assert (done(found), reasons(found)) == ([], [Reason.NAMESPACE_TERMINATING])


def test_the_tenant_is_deleted_after_its_namespace():
    found = planned(snapshot(deleted(tenant("acme"))))
    assert done(found) == [FINALIZER_ACT]
    assert found.writes["Tenant/tenant-root/acme#finalizer"].body == {"metadata": {"finalizers": []}}


def test_in_the_end_nothing_is_left():
    left = settled(going())
    assert (left.tenants, set(left.namespaces)) == ([], {"tenant-root"})


def test_a_tenant_with_tenants_in_it_stays():
    found = planned(going(tenant("acme/web"), tenant("acme/shop")))
    assert not any(each.verb.value == "Delete" for each in found.plan.actions)
    facts = next(each.facts for each in found.plan.blocked if each.reason == Reason.TENANT_IN_USE)
    assert (facts.children, facts.applications) == (["shop", "web"], 0)


def test_a_tenant_with_applications_in_it_stays():
    found = planned(going(applications={"tenant-acme": 3}))
    assert (done(found), reasons(found)) == ([], [Reason.TENANT_IN_USE])
    assert found.plan.blocked[0].facts.applications == 3


def test_a_tenant_stays_while_it_is_not_known_whether_it_has_applications():
    found = planned(going(watch_error="postgreses: forbidden"))
    assert (done(found), reasons(found)) == ([], [Reason.APPLICATIONS_UNWATCHED])


@pytest.mark.parametrize("of", ["", "uid-of-another"])
def test_a_foreign_namespace_is_kept_and_does_not_block_the_tenant(of):
    world = snapshot(
        deleted(tenant("acme")), namespaces=[namespace("tenant-acme", of=of)], applications={"tenant-acme": 9}
    )
    assert done(planned(world)) == [FINALIZER_ACT]


def test_the_top_goes_without_its_namespace():
    world = snapshot(deleted(tenant("root")), namespaces=[namespace("tenant-root", of="uid-root")])
    assert done(planned(world)) == ["Patch Tenant/tenant-root/root#finalizer"]


def test_the_top_stays_while_there_are_tenants():
    found = planned(snapshot(deleted(tenant("root")), tenant("acme"), secrets=[secret("tenant-root", "")]))
    facts = next(each.facts for each in found.plan.blocked if each.reason == Reason.TENANT_IN_USE)
    assert facts.children == ["acme"]


def test_finalizers_of_others_stay():
    both = tenant("acme", finalizers=["other/one", names.TENANT_FINALIZER], deletionTimestamp=DELETED)
    found = planned(snapshot(both))
    assert found.writes["Tenant/tenant-root/acme#finalizer"].body == {"metadata": {"finalizers": ["other/one"]}}
    assert found.writes["Tenant/tenant-root/acme#finalizer"].resource_version == "7"


def test_a_tenant_without_our_finalizer_is_not_touched():
    gone = tenant("acme", finalizers=["other/one"], deletionTimestamp=DELETED)
    assert done(planned(snapshot(gone, namespaces=[namespace("tenant-acme", of="uid-acme")]))) == []
