"""Status of a tenant after a pass."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from tests.builders.tenants import (
    DELETED,
    NOW,
    after,
    deleted,
    kept,
    namespace,
    planned,
    secret,
    settled,
    snapshot,
    tenant,
)

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.tenants import status_tenants
from nodeyard.capabilities.affinity.types import TenantStatus
from nodeyard.kube.names import PAUSED

SEED = ("dc1", ("dc1", "dc2"))


def outcome(found, result=Result.DONE, message=""):
    return Outcome(
        results=tuple(ActionResult(action=each, result=result, message=message) for each in found.plan.actions)
    )


def written(world, result=Result.DONE, message="", now=NOW):
    found = planned(world)
    writes = status_tenants(world, found.plan, outcome(found, result, message), now)
    return {each.object.name: each.status for each in writes}


def world(*tenants, **given):
    return snapshot(*tenants, **{"secrets": [secret("tenant-root", "")], **given})


def conditions(status):
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def test_a_tenant_that_is_served_says_where_and_which_classes():
    status = written(world(tenant("acme", *SEED, generation=4)))["acme"]
    assert status["namespace"] == "tenant-acme"
    assert (status["defaultAffinityClass"], status["allowedAffinityClasses"]) == ("dc1", ["dc1", "dc2"])
    assert status["observedGeneration"] == 4
    assert conditions(status) == {
        "Ready": ("True", "TenantReady"),
        "NamespaceReady": ("True", "TenantReady"),
        "ClassesValid": ("True", "ClassesValid"),
    }
    assert {each["observedGeneration"] for each in status["conditions"]} == {4}


def test_a_child_reports_its_inherited_classes():
    tree = settled(world(tenant("acme", *SEED), tenant("acme/web")))
    status = written(tree)["web"]
    assert (status["defaultAffinityClass"], status["allowedAffinityClasses"]) == ("dc1", ["dc1", "dc2"])


def test_where_all_classes_are_allowed_none_is_listed():
    assert not {"defaultAffinityClass", "allowedAffinityClasses"} & written(world(tenant("acme")))["acme"].keys()


def test_no_class_at_all_is_an_empty_list():
    assert written(world(tenant("acme", None, [])))["acme"]["allowedAffinityClasses"] == []


def test_an_unchanged_status_is_not_written_again_and_keeps_its_timestamps():
    first = world(tenant("acme", *SEED))
    stands = {name: msgspec.convert(each, TenantStatus) for name, each in written(first).items()}
    later = after(first, planned(first))
    same = [msgspec.structs.replace(each, status=stands[each.name]) for each in later.tenants]
    assert written(replace(later, tenants=same), now=NOW + timedelta(hours=1)) == {}


def test_a_condition_keeps_its_transition_time():
    first = world(tenant("acme", *SEED))
    stands = msgspec.convert(written(first)["acme"], TenantStatus)
    changed = kept(tenant("acme", "dc9", ["dc9"], generation=2))
    again = replace(after(first, planned(first)), tenants=[msgspec.structs.replace(changed, status=stands)])
    status = written(again, now=NOW + timedelta(hours=1))["acme"]
    moments = {each["type"]: each["lastTransitionTime"] for each in status["conditions"]}
    assert moments["NamespaceReady"] == "2026-03-01T12:00:00Z"
    assert moments["ClassesValid"] == moments["Ready"] == "2026-03-01T13:00:00Z"


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (("dc1", ("dc1", "gpu")), Reason.NOT_ALLOWED_BY_PARENT),
        (("gpu", None), Reason.DEFAULT_NOT_ALLOWED),
        ((None, ("dc2",)), Reason.DEFAULT_NOT_ALLOWED),
    ],
)
def test_classes_that_are_refused_are_conditions_and_the_namespace_is_ready(own, reason):
    tree = settled(world(tenant("acme", *SEED)))
    status = written(replace(tree, tenants=[*tree.tenants, tenant("acme/web", *own)]))["web"]
    assert conditions(status) == {
        "Ready": ("False", reason),
        "NamespaceReady": ("True", "TenantReady"),
        "ClassesValid": ("False", reason),
    }


def test_a_default_that_cannot_be_used_is_not_in_effect():
    assert "defaultAffinityClass" not in written(world(tenant("acme", "gpu", ["dc1"])))["acme"]


def test_a_class_that_does_not_exist_is_a_condition():
    status = written(world(tenant("acme", "dc9")))["acme"]
    assert conditions(status)["ClassesValid"] == ("False", "AffinityClassNotFound")
    assert "AffinityClass dc9, which does not exist" in status["conditions"][-1]["message"]


def test_a_foreign_namespace_is_reported_with_the_remedy():
    status = written(world(tenant("acme"), namespaces=[namespace("tenant-acme")]))["acme"]
    assert conditions(status)["NamespaceReady"] == conditions(status)["Ready"] == ("False", "NameConflict")
    assert "namespace" not in status
    assert (
        "kubectl annotate --overwrite namespace tenant-acme nodeyard.dev/tenant=uid-acme"
        in (status["conditions"][0]["message"])
    )


def test_a_namespace_that_goes_is_not_ready():
    going = namespace("tenant-acme", of="uid-acme", deletionTimestamp=DELETED)
    status = written(world(tenant("acme"), namespaces=[going]))["acme"]
    assert conditions(status)["NamespaceReady"] == ("False", "NamespaceTerminating")
    assert "namespace" not in status


@pytest.mark.parametrize("name", ["a-b", "Acme"])
def test_a_bad_name_is_a_condition(name):
    status = written(world(tenant(name)))[name]
    assert set(conditions(status).values()) == {("False", "BadName")}


def test_a_parent_that_is_missing_is_a_condition():
    status = written(world(tenant("gone/web", "dc1"), namespaces=[namespace("tenant-gone")]))["web"]
    assert set(conditions(status).values()) == {("False", "ParentMissing")}
    assert status["allowedAffinityClasses"] == []


def test_an_invalid_name_reports_nothing_of_another_tenant():
    tree = settled(world(tenant("acme", *SEED), tenant("acme/web")))
    status = written(replace(tree, tenants=[*tree.tenants, tenant("acme-web")]))["acme-web"]
    assert not {"namespace", "defaultAffinityClass", "allowedAffinityClasses"} & status.keys()


@pytest.mark.parametrize("result", [Result.FAILED, Result.DENIED, Result.UNKNOWN])
def test_a_write_that_fails_is_reported(result):
    status = written(world(tenant("acme")), result, "the server is on fire")["acme"]
    assert conditions(status)["Ready"] == ("False", "FinalizerAddedFailed")
    assert "the server is on fire" in status["conditions"][0]["message"]
    assert "namespace" not in status


def test_a_failure_of_one_tenant_is_not_anothers():
    both = world(tenant("acme"), tenant("zoo"))
    found = planned(both)
    results = [
        ActionResult(action=each, result=Result.FAILED if each.facts.object.name == "acme" else Result.DONE)
        for each in found.plan.actions
    ]
    writes = status_tenants(both, found.plan, Outcome(results=tuple(results)), NOW)
    ready = {each.object.name: conditions(each.status)["Ready"][0] for each in writes}
    assert ready == {"acme": "False", "zoo": "True"}


def test_while_a_namespace_is_held_back_it_is_pending():
    status = written(world(tenant("acme")), Result.HELD)["acme"]
    assert conditions(status)["NamespaceReady"] == ("False", "NamespacePending")


def test_a_tenant_that_cannot_be_deleted_reports_why():
    tree = settled(world(tenant("acme"), tenant("acme/web")))
    going = [deleted(each) if each.name == "acme" else each for each in tree.tenants]
    status = written(replace(tree, tenants=going, applications={"tenant-acme": 2}))["acme"]
    assert conditions(status)["Ready"] == ("False", "TenantInUse")
    assert "1 tenant (web) and 2 applications" in status["conditions"][0]["message"]


def test_a_tenant_whose_namespace_is_deleted_in_this_pass_is_being_deleted():
    tree = settled(world(tenant("acme")))
    status = written(replace(tree, tenants=[deleted(tree.tenants[0])]))["acme"]
    assert conditions(status)["Ready"] == conditions(status)["NamespaceReady"] == ("False", "Deleting")
    assert "namespace" not in status


def test_no_status_is_written_on_a_tenant_whose_finalizer_is_removed():
    assert written(world(deleted(tenant("acme")))) == {}


def test_no_status_is_written_where_an_apiservice_serves_the_group():
    assert written(world(tenant("acme"), is_served_elsewhere=True)) == {}


def test_a_paused_tenant_is_left_as_it_is():
    assert written(world(tenant("acme", annotations={PAUSED: "true"}))) == {}
