"""Reviews of creation, update and deletion of a tenant."""

import msgspec
import pytest
from tests.builders.affinity_views import AffinityView
from tests.builders.applications import (
    api_service,
    application,
    class_body,
    definition_body,
    question,
    with_record,
)
from tests.builders.placements import PlacementView, body, namespace
from tests.builders.tenants import DELETED, tenant_body

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reviews.tenants import review
from nodeyard.kube.objects import PartialObject
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.webhooks import Cause, Found, Lookup, Missing, Unreadable, User

KEY = names.AFFINITY_CLASS
CLASSES = [class_body(each) for each in ("dc1", "dc2", "gpu")]
SEED = {"defaultAffinityClass": "dc1", "allowedAffinityClasses": ["dc1", "dc2"]}
ACME = tenant_body("acme", SEED)


def asked(new, old=None, *, among=(ACME,), classes=CLASSES, **given):
    request = question(new, old, **{"operation": given.pop("operation", "")})
    return review(msgspec.structs.replace(request, **given), PlacementView(*among, *classes))


def web(**spec):
    return tenant_body("acme/web", spec)


def only(*allowed, **more):
    return {"allowedAffinityClasses": list(allowed), **more}


# creation


def test_the_tenant_of_the_design_is_admitted_without_a_warning():
    response = asked(ACME, among=())
    assert (response.is_allowed, response.warnings) == (True, ())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (tenant_body("a-b"), "must match ^[a-z][a-z0-9]*$"),
        (tenant_body("a" * 47), "no more than 46 characters"),
        (tenant_body("acme", namespace="default"), "metadata.namespace 'default' belongs to no tenant"),
        (tenant_body("b" * 20, namespace=f"tenant-{'a' * 46}"), "more than 63 characters"),
        (tenant_body("acme", {"host": "not a host"}), "Host 'not a host' of Tenant tenant-root/acme"),
    ],
)
def test_a_name_a_place_or_a_host_that_cannot_be_is_invalid(body, said):
    response = asked(body, among=())
    assert (response.is_allowed, response.code, response.reason) == (False, 422, "Invalid")
    assert said in response.message


def test_a_class_that_the_parent_does_not_allow_is_denied_with_its_name():
    response = asked(web(**only("dc1", "gpu")))
    assert response.message == (
        "spec.allowedAffinityClasses of Tenant tenant-acme/web has gpu, but its parent tenant-acme allows only dc1, "
        "dc2. Remove it, or allow it in the parent first"
    )


def test_all_classes_that_the_parent_does_not_allow_are_named_at_once():
    assert "has gpu, dc9, but its parent" in asked(web(**only("gpu", "dc1", "dc9"))).message


def test_the_effective_policy_of_the_parent_decides():
    root = tenant_body("root", only("dc1", defaultAffinityClass=""))
    assert (
        "has dc2, but its parent tenant-acme allows only dc1" in asked(web(**only("dc2")), among=(root, ACME)).message
    )


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"defaultAffinityClass": "gpu"}, id="by the parent"),
        pytest.param({"defaultAffinityClass": "dc2", "allowedAffinityClasses": ["dc1"]}, id="by itself"),
    ],
)
def test_a_default_that_is_not_allowed_is_denied(spec):
    response = asked(web(**spec))
    assert not response.is_allowed
    assert (
        f"The default class {spec['defaultAffinityClass']} of Tenant tenant-acme/web is not one of" in response.message
    )


def test_an_inherited_default_that_is_not_allowed_is_denied_with_whose_it_is():
    assert (
        "The default class dc1 of Tenant tenant-acme/web, inherited from tenant-acme, is not one of the allowed "
        in (asked(web(**only("dc2"))).message)
    )


@pytest.mark.parametrize("spec", [{}, only("dc1"), only("dc2", defaultAffinityClass=""), only(defaultAffinityClass="")])
def test_a_subset_of_the_parents_classes_is_admitted(spec):
    response = asked(web(**spec))
    assert (response.is_allowed, response.warnings) == (True, ())


def test_a_class_that_does_not_exist_yet_is_only_warned_about():
    response = asked(ACME, among=(), classes=[])
    assert response.is_allowed
    assert response.warnings == (
        "Tenant tenant-root/acme names AffinityClass dc1, dc2, which do not exist. Create them, or remove "
        "them from the spec",
    )


def test_a_name_that_the_server_makes_is_not_looked_at():
    body = {**ACME, "metadata": {"generateName": "acme", "namespace": "tenant-root"}}
    assert asked(body, among=()).is_allowed


# its parent


PARENT = ObjectRef(api_version=names.APPS_API_VERSION, kind="Tenant", namespace="tenant-root", name="acme")


def test_a_parent_that_is_not_in_the_cache_is_looked_up():
    assert asked(web(), among=()) == Lookup((PARENT,))


def test_without_a_parent_a_tenant_is_denied():
    response = asked(web(), among=(), answers={PARENT: Missing()})
    assert "namespace tenant-acme belongs to no Tenant" in response.message


def test_a_parent_that_is_too_new_to_be_known_is_no_reason_to_deny():
    response = asked(web(**only("gpu")), among=(), answers={PARENT: Found(PartialObject())})
    assert response.is_allowed
    assert "too new" in response.warnings[0]


def test_a_parent_that_cannot_be_read_is_named():
    response = asked(web(), among=(), answers={PARENT: Unreadable("may not get tenants", Cause.FORBIDDEN)})
    assert response.is_allowed
    assert "may not get tenants" in response.warnings[0]


def test_no_tenant_is_created_below_a_terminating_one():
    going = tenant_body("acme", deletionTimestamp=DELETED)
    assert asked(web(), among=(going,)).message == "Tenant tenant-root/acme is being deleted"


# updates


def test_a_change_of_something_else_is_admitted_with_a_warning():
    old = web(**only("dc1", "gpu"))
    response = asked({**old, "spec": {**old["spec"], "etcd": True}}, old)
    assert response.is_allowed
    assert "has gpu, but its parent" in response.warnings[0]
    assert response.warnings[0].endswith("allowed because it was already so before this change")


def test_an_added_class_is_reviewed_and_one_that_was_there_is_admitted():
    old = web(**only("dc1", "gpu"))
    response = asked(web(**only("dc1", "gpu", "dc9")), old)
    assert "has dc9, but its parent" in response.message
    assert "gpu" not in response.message.partition("allows only")[0]


def test_removing_a_refused_class_is_admitted_without_a_warning():
    response = asked(web(**only("dc1")), web(**only("dc1", "gpu")))
    assert (response.is_allowed, response.warnings) == (True, ())


def test_a_default_that_a_change_leaves_without_is_denied():
    assert not asked(web(**only("dc2", defaultAffinityClass="dc1")), web(defaultAffinityClass="dc1")).is_allowed


def test_the_root_tenant_is_reviewed_by_its_new_spec_and_not_by_its_old_one():
    old = tenant_body("root", only("dc1", defaultAffinityClass="dc1"))
    new = tenant_body("root", only("dc1", defaultAffinityClass="gpu"))
    assert "The default class gpu of Tenant tenant-root/root" in asked(new, old, among=(old,)).message


def test_a_host_that_was_wrong_before_is_admitted():
    old = tenant_body("acme", {"host": "not a host"})
    response = asked({**old, "spec": {**old["spec"], "etcd": True}}, old, among=(old,))
    assert response.is_allowed
    assert "not a host" in response.warnings[0]


def test_names_are_not_looked_at_again():
    old = tenant_body("a-b")
    assert asked({**old, "spec": {"etcd": True}}, old, among=(old,)).is_allowed


def test_missing_classes_are_not_repeated_with_every_change():
    response = asked({**ACME, "spec": {**SEED, "etcd": True}}, ACME, classes=[])
    assert response.warnings == ()


def test_a_tenant_that_withdraws_a_class_from_descendants_is_warned_with_its_name():
    child = web(**only("dc2", defaultAffinityClass=""))
    response = asked(tenant_body("acme", only("dc1", defaultAffinityClass="dc1")), ACME, among=(ACME, child))
    assert response.is_allowed
    assert response.warnings == (
        "with this change: spec.allowedAffinityClasses of Tenant tenant-acme/web has dc2, but its parent tenant-acme "
        "allows only dc1. Remove it, or allow it in the parent first",
    )


def test_withdrawing_a_class_that_applications_have_is_warned_about():
    used = with_record(application({}), {"metadata": {"name": "postgres-main-db", "labels": {KEY: "dc2"}}})
    among = (ACME, definition_body(), used)

    (warning,) = asked(tenant_body("acme", only("dc1", defaultAffinityClass="dc1")), ACME, among=among).warnings

    assert warning == (
        "this change of Tenant tenant-root/acme revokes AffinityClass dc2 in tenant-acme: Postgres main-db keep it, "
        "and their pods keep running where they are, until they name another class"
    )
    other = asked(tenant_body("acme", only("dc2", defaultAffinityClass="dc2")), ACME, among=among)
    assert other.warnings == ()


def test_withdrawing_a_class_that_applications_of_a_tenant_below_have_is_warned_about_too():
    below = application({}, namespace="tenant-acme-web")
    used = with_record(below, {"metadata": {"name": "postgres-main-db", "labels": {KEY: "dc2"}}})

    changed = tenant_body("acme", only("dc1", defaultAffinityClass="dc1"))
    (warning,) = asked(changed, ACME, among=(ACME, web(), definition_body(), used)).warnings

    assert "revokes AffinityClass dc2 in tenant-acme-web: Postgres main-db keep it" in warning


@pytest.mark.parametrize("names", [("acme", "acme/a-b"), ("a-b", "a-b/web")], ids=["the child", "itself"])
def test_a_bad_name_in_the_tree_does_not_keep_anybody_from_changing_classes(names):
    own, child = (tenant_body(each, only("dc1", "dc2")) for each in names)
    response = asked(tenant_body(names[0], only("dc1")), own, among=(own, child))
    assert response.is_allowed


def test_a_terminating_tenant_accepts_any_change():
    body = tenant_body("a-b", only("dc9"), deletionTimestamp=DELETED)
    assert asked(body, tenant_body("a-b")).is_allowed


def test_an_undecodable_tenant_is_left_to_the_plan():
    assert asked({**ACME, "spec": {"etcd": "what"}}).is_allowed


# deletion


KEPT = tenant_body("acme", SEED, finalizers=[names.TENANT_FINALIZER])


def removed(*among, old=KEPT, **given):
    return asked(None, old, among=(*among, old), operation="DELETE", **given)


def test_an_empty_tenant_may_be_deleted():
    other = application(kind="Redis", name="cache", namespace="tenant-other")
    assert removed(definition_body("Redis"), other, tenant_body("zoo")).is_allowed


def warned(*among, old=KEPT):
    response = review(question(None, old, operation="DELETE"), AffinityView(old, *among))
    assert response.is_allowed
    return response.warnings


def its_namespace(of="uid-acme", name="tenant-acme"):
    found = namespace(name)
    found["metadata"]["annotations"] = {names.TENANT: of}
    return found


def test_a_deletion_warning_names_everything_deleted_with_the_tenant():
    claim = body("v1", "PersistentVolumeClaim", "data")
    assert warned(its_namespace()) == (
        "Deletes Namespace tenant-acme of Tenant tenant-root/acme with everything in it (no PersistentVolumeClaims, "
        "workloads or single pods; Secrets and other kinds are not counted)",
    )
    (warning,) = warned(its_namespace(), claim)
    assert "waits for approval: it deletes Namespace tenant-acme with 1 PersistentVolumeClaim and everything" in warning


def test_a_kept_namespace_is_not_announced_as_deleted():
    root = tenant_body("root", finalizers=[names.TENANT_FINALIZER])
    claim = body("v1", "PersistentVolumeClaim", "data")
    rooted = body("v1", "PersistentVolumeClaim", "data", namespace="tenant-root")
    assert warned(its_namespace(of="uid-of-another"), claim) == ()
    assert warned(its_namespace(of="uid-root", name="tenant-root"), rooted, old=root) == ()
    assert warned(claim) == ()


def test_a_tenant_in_use_is_not_deleted_and_everything_in_it_is_named():
    among = (
        definition_body("Postgres"),
        definition_body("Redis"),
        application(),
        application(kind="Redis", name="cache"),
    )
    assert removed(*among, web(), tenant_body("acme/shop")).message == (
        "Tenant tenant-root/acme is in use by 2 tenants (shop, web) and 2 applications (Postgres main-db, Redis cache) "
        "in tenant-acme: delete them first"
    )


def test_one_that_is_going_already_is_not_asked_about_twice():
    going = tenant_body("acme", SEED, finalizers=[names.TENANT_FINALIZER], deletionTimestamp=DELETED)
    assert removed(web(), old=going).is_allowed


def test_a_platform_that_keeps_tenants_itself_has_its_own_rules():
    assert removed(web(), old=ACME).is_allowed


def test_a_terminating_namespace_does_not_block_its_tenants():
    user = User(username="system:serviceaccount:kube-system:namespace-controller")
    assert removed(web(), user=user).is_allowed


def test_the_top_is_not_deleted_before_the_tenants():
    root = tenant_body("root", finalizers=[names.TENANT_FINALIZER])
    assert "1 tenant (acme)" in removed(ACME, old=root).message


def test_tenants_of_a_platform_that_serves_them_itself_are_not_reviewed():
    greedy = web(**only("gpu"))
    assert not asked(greedy).is_allowed
    assert asked(greedy, among=(ACME, api_service())).is_allowed
