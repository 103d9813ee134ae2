"""Plans of tenants: their Namespaces, their values, and refusals."""

from dataclasses import replace

import msgspec
import pytest
from tests.builders.tenants import (
    DELETED,
    after,
    done,
    kept,
    namespace,
    planned,
    reasons,
    secret,
    settled,
    snapshot,
    tenant,
    tenant_body,
    text_of,
    values_of,
)

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.types import Tenant
from nodeyard.kube.names import PAUSED
from nodeyard.plan.model import to_wire

SEED = ("dc1", ("dc1", "dc2"))
ROOT = "_cluster:\n  root-host: example.org\n_namespace: {host: example.org, etcd: tenant-root}\n"
NAMESPACE_ACT = "Apply Namespace/tenant-acme"
VALUES_ACT = "Apply Secret/tenant-acme/cozystack-values"


def world(*tenants, **given):
    return snapshot(*tenants, **{"secrets": [secret("tenant-root", ROOT)], **given})


def acme(**given):
    return tenant("acme", *SEED, **given)


def blocked(found):
    return {each.object.name: each for each in found.plan.blocked}


# a new tenant


def test_a_tenant_is_guarded_then_given_its_namespace_and_then_its_values():
    found = planned(world(acme()))
    assert done(found) == ["Patch Tenant/tenant-root/acme#finalizer", NAMESPACE_ACT, VALUES_ACT]
    assert [each.after for each in found.plan.actions] == [
        (),
        ("Tenant/tenant-root/acme#finalizer",),
        ("Namespace/tenant-acme",),
    ]
    assert found.plan.blocked == ()


def test_its_namespace_names_all_above_it_and_belongs_to_its_parents():
    web = kept(tenant("acme/web", spec={"ingress": True}))
    found = planned(after_acme(web))
    body = found.writes["Namespace/tenant-acme-web"].body
    assert body == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "tenant-acme-web",
            "annotations": {"nodeyard.dev/tenant": "uid-acme/web"},
            "labels": {
                "tenant.cozystack.io/tenant-root": "",
                "tenant.cozystack.io/tenant-acme": "",
                "tenant.cozystack.io/tenant-acme-web": "",
                "namespace.cozystack.io/etcd": "tenant-root",
                "namespace.cozystack.io/ingress": "tenant-acme-web",
                "namespace.cozystack.io/gateway": "",
                "namespace.cozystack.io/monitoring": "",
                "namespace.cozystack.io/seaweedfs": "",
                "namespace.cozystack.io/host": "web.acme.example.org",
            },
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "name": "tenant-acme",
                    "uid": "uid-tenant-acme",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
    }


def after_acme(*more):
    """Build the snapshot of an acme that has been reconciled before."""
    served = settled(world(acme()))
    return replace(served, tenants=[*more, *served.tenants])


def test_its_values_are_a_secret_that_flux_reacts_to():
    body = planned(world(acme())).writes["Secret/tenant-acme/cozystack-values"].body
    assert body["metadata"] == {
        "name": "cozystack-values",
        "namespace": "tenant-acme",
        "labels": {"reconcile.fluxcd.io/watch": "Enabled"},
    }
    assert values_of(body) == {
        "_cluster": {"root-host": "example.org"},
        "_namespace": {
            "etcd": "tenant-root",
            "ingress": "",
            "gateway": "",
            "monitoring": "",
            "seaweedfs": "",
            "host": "acme.example.org",
            "defaultAffinityClass": "dc1",
            "allowedAffinityClasses": ["dc1", "dc2"],
        },
    }


def test_the_plan_contains_nothing_of_the_values():
    first = world(acme(), secrets=[secret("tenant-root", "_cluster: {password: hunter2}\n")])
    second = replace(settled(first), tenants=[kept(tenant("acme", "dc2", ["dc2"]))])
    for each in (first, second):
        found = planned(each)
        told = msgspec.json.encode(to_wire(found.plan)).decode()
        assert "data[values.yaml]" in told
        before, after = each.values.get("tenant-acme"), found.writes["Secret/tenant-acme/cozystack-values"].body
        for known in filter(None, (before, after)):
            assert "hunter2" in text_of(known)
            assert known["data"]["values.yaml"] not in told


# repeated plans


def test_an_unchanged_tenant_is_not_written():
    served = settled(world(acme(), tenant("acme/web", None, ["dc1"]), tenant("root")))
    assert done(planned(served)) == []


def test_a_change_reaches_the_whole_tree_in_one_pass():
    tree = settled(world(acme(), tenant("acme/web"), tenant("acme/web/shop")))
    changed = [kept(tenant("acme", "dc2", ["dc2"])) if each.name == "acme" else each for each in tree.tenants]
    found = planned(replace(tree, tenants=changed))
    assert done(found) == [
        VALUES_ACT,
        "Apply Secret/tenant-acme-web/cozystack-values",
        "Apply Secret/tenant-acme-web-shop/cozystack-values",
    ]
    shop = values_of(found.writes["Secret/tenant-acme-web-shop/cozystack-values"].body)
    assert shop["_namespace"]["defaultAffinityClass"] == "dc2"


def test_a_change_of_the_cluster_reaches_all():
    tree = settled(world(acme(), tenant("acme/web")))
    changed = replace(tree, values={**tree.values, "tenant-root": secret("tenant-root", "_cluster: {a: 1}\n")})
    assert {values_of(each)["_cluster"]["a"] for each in settled(changed).values.values()} == {1}


def test_labels_that_others_have_put_on_a_namespace_stay():
    served = settled(world(acme()))
    live = msgspec.to_builtins(served.namespaces["tenant-acme"])
    live["metadata"]["labels"] = {"theirs": "x"}
    body = planned(replace(served, namespaces={**served.namespaces, "tenant-acme": _namespace(live)}))
    assert done(body) == [NAMESPACE_ACT]
    assert not any("theirs" in change.path for change in body.plan.actions[0].diff)


def _namespace(wire):
    return msgspec.convert(wire, type(namespace("x")))


def test_foreign_changes_of_values_are_reverted():
    served = settled(world(acme()))
    broken = replace(served, values={**served.values, "tenant-acme": secret("tenant-acme", "_namespace: {}\n")})
    assert done(planned(broken)) == [VALUES_ACT]


def test_a_namespace_that_was_deleted_under_a_tenant_is_made_again():
    served = settled(world(acme()))
    lost = {name: each for name, each in served.namespaces.items() if name != "tenant-acme"}
    found = planned(replace(served, namespaces=lost, values={"tenant-root": served.values["tenant-root"]}))
    assert done(found) == [NAMESPACE_ACT, VALUES_ACT]


# the root


def test_the_top_is_adopted_and_belongs_to_nobody():
    found = planned(snapshot(tenant("root", "dc1"), secrets=[secret("cozy-system", ROOT)]))
    body = found.writes["Namespace/tenant-root"].body
    assert "ownerReferences" not in body["metadata"]
    assert body["metadata"]["annotations"] == {names.TENANT: "uid-root"}
    made = values_of(found.writes["Secret/tenant-root/cozystack-values"].body)
    assert made["_namespace"]["defaultAffinityClass"] == "dc1"
    assert made["_cluster"] == {"root-host": "example.org"}


def test_without_a_tenant_the_top_is_left_as_it_is():
    found = planned(world(acme()))
    assert not any(each.object.name == "tenant-root" for each in found.plan.actions)


# refusals


def refused(found, reason, name="acme"):
    """Assert that the plan has no actions and this refusal."""
    assert done(found) == []
    assert reasons(found) == [reason]
    return blocked(found)[name].facts


def test_no_action_where_an_apiservice_serves_the_group():
    going = msgspec.convert(tenant_body("web", finalizers=[names.TENANT_FINALIZER], deletionTimestamp=DELETED), Tenant)
    found = planned(world(acme(), going, is_served_elsewhere=True))
    assert done(found) == []
    assert reasons(found) == [Reason.SERVED_BY_API_SERVICE] * 2


def test_a_paused_tenant_is_skipped_and_its_children_use_its_last_policy():
    paused = kept(acme(annotations={PAUSED: "true"}))
    web = kept(tenant("acme/web"))
    spaces = [namespace("tenant-acme", of="uid-acme")]
    values = [secret("tenant-root", ROOT), secret("tenant-acme", "_cluster: {old: 1}\n")]
    found = planned(world(paused, web, namespaces=spaces, secrets=values))
    assert reasons(found) == [Reason.PAUSED]
    assert values_of(found.writes["Secret/tenant-acme-web/cozystack-values"].body)["_cluster"] == {"old": 1}


def test_a_bad_name_gets_no_namespace():
    facts = refused(planned(world(tenant("a-b"))), Reason.BAD_NAME, "a-b")
    assert "^[a-z][a-z0-9]*$" in facts.errors[0]


def test_a_tenant_outside_tenants_gets_no_namespace():
    refused(planned(world(acme(namespace="default"))), Reason.BAD_NAME)


@pytest.mark.parametrize("of", ["", "uid-of-another"])
def test_a_foreign_namespace_is_never_changed(of):
    facts = refused(planned(world(acme(), namespaces=[namespace("tenant-acme", of=of)])), Reason.NAME_CONFLICT)
    assert facts.of == of


def test_a_foreign_namespace_created_since_the_snapshot_is_not_taken_over():
    new = world(acme())
    assert planned(new).writes["Namespace/tenant-acme"].is_first
    served = settled(new)
    changed = planned(replace(served, tenants=[acme(spec={"ingress": True})]))
    assert not changed.writes["Namespace/tenant-acme"].is_first


def test_below_a_namespace_that_is_not_its_parents_there_is_no_tenant():
    found = planned(world(acme(), tenant("acme/web"), namespaces=[namespace("tenant-acme")]))
    assert done(found) == []
    assert {name: each.reason for name, each in blocked(found).items()} == {
        "acme": Reason.NAME_CONFLICT,
        "web": Reason.PARENT_MISSING,
    }


def test_a_tenant_without_a_parent_is_refused():
    orphan = tenant("gone/web")
    facts = refused(planned(world(orphan, namespaces=[namespace("tenant-gone")])), Reason.PARENT_MISSING, "web")
    assert facts.missing == "tenant-gone"


def test_a_tenant_whose_parents_namespace_is_not_seen_yet_waits():
    found = planned(world(kept(acme()), tenant("acme/web")))
    assert reasons(found) == [Reason.PARENT_MISSING]
    assert done(found) == [NAMESPACE_ACT, VALUES_ACT]


@pytest.mark.parametrize("going", ["tenant-root", "tenant-acme"])
def test_nothing_is_written_into_a_terminating_namespace(going):
    spaces = [namespace("tenant-acme", of="uid-acme")]
    spaces = [*(each for each in spaces if each.metadata.name != going), _going(going)]
    assert refused(planned(world(acme(), namespaces=spaces)), Reason.NAMESPACE_TERMINATING).terminating == going


def _going(name):
    return namespace(name, of="uid-acme", deletionTimestamp=DELETED)


def test_values_that_cannot_be_read_stop_those_below_and_leave_what_they_have():
    served = settled(world(acme(), tenant("zoo")))
    broken = replace(served, values={**served.values, "tenant-root": secret("tenant-root", "a: [")})
    found = planned(broken)
    assert done(found) == []
    assert reasons(found) == [Reason.BAD_PARENT_VALUES] * 2
    assert blocked(found)["acme"].facts.of == "tenant-root"


def test_the_platforms_values_are_named_where_they_are_the_ones_that_cannot_be_read():
    found = planned(snapshot(tenant("root"), secrets=[secret("cozy-system", "- 1")]))
    assert refused(found, Reason.BAD_PARENT_VALUES, "root").of == "cozy-system"


@pytest.mark.parametrize(("spec", "is_own"), [({"host": "not a host"}, True), ({}, False)])
def test_a_host_that_no_label_can_hold_is_refused(spec, is_own):
    above = f"_namespace: {{host: {'a' * 59}.org}}\n"
    found = planned(world(tenant("acme", spec=spec), secrets=[secret("tenant-root", above)]))
    assert refused(found, Reason.BAD_HOST).is_own is is_own


def test_refused_classes_are_reported_and_the_rest_continues():
    served = settled(world(acme()))
    web = kept(tenant("acme/web", "gpu", ["gpu", "dc1"]))
    found = planned(replace(served, tenants=[*served.tenants, web]))
    assert reasons(found) == [Reason.NOT_ALLOWED_BY_PARENT, Reason.DEFAULT_NOT_ALLOWED]
    made = values_of(found.writes["Secret/tenant-acme-web/cozystack-values"].body)["_namespace"]
    assert made["allowedAffinityClasses"] == ["dc1"]
    assert "defaultAffinityClass" not in made


def test_one_bad_tenant_does_not_stop_another():
    found = planned(world(tenant("a-b"), acme()))
    assert NAMESPACE_ACT in done(found)
    assert reasons(found) == [Reason.BAD_NAME]


def test_equal_snapshots_have_equal_plans_whatever_their_order():
    tenants = [acme(), tenant("zoo"), tenant("root")]
    one, other = world(*tenants), world(*tenants)
    other = replace(other, tenants=list(reversed(other.tenants)))
    assert planned(one).plan == planned(other).plan


def test_an_action_whose_response_was_lost_is_safely_planned_again():
    first = world(acme())
    assert settled(after(first, planned(first))) == settled(first)
