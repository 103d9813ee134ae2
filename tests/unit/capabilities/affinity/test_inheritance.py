"""The effective classes of a tenant, by its place in the tree."""

import pytest
from tests.builders.tenants import CLASSES, tenant

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.inheritance import effective_policies
from nodeyard.capabilities.affinity.reasons import Reason

SEED = ("dc1", ("dc1", "dc2"))


def found(*tenants, namespace="tenant-acme-web", classes=CLASSES):
    return effective_policies(tenants, classes)[namespace]


def faults(policy):
    return [each.reason for each in policy.faults]


@pytest.mark.parametrize(
    ("own", "effective"),
    [
        pytest.param((None, None), SEED, id="says nothing: the parent's"),
        pytest.param(("dc2", None), ("dc2", SEED[1]), id="another default of those allowed"),
        pytest.param(("", None), ("", SEED[1]), id="no default"),
        pytest.param((None, ("dc1",)), ("dc1", ("dc1",)), id="fewer"),
        pytest.param((None, ("dc2", "dc1")), ("dc1", ("dc2", "dc1")), id="in an order of its own"),
        pytest.param((None, ("dc1", "dc1")), ("dc1", ("dc1",)), id="each once"),
        pytest.param(("", ()), ("", ()), id="none at all"),
    ],
)
def test_a_tenant_has_its_own_within_its_parents(own, effective):
    policy = found(tenant("acme", *SEED), tenant("acme/web", *own))
    assert (policy.default, policy.allowed) == effective
    assert (policy.fault, policy.faults) == ("", ())


def test_a_default_is_the_nearest_ancestors():
    policy = found(
        tenant("root", "gpu"),
        tenant("acme", "dc1"),
        tenant("acme/web"),
        tenant("acme/web/shop"),
        namespace="tenant-acme-web-shop",
    )
    assert policy.default == "dc1"


def test_a_default_that_was_declined_above_is_not_taken_from_further_up():
    assert found(tenant("root", "gpu"), tenant("acme", ""), tenant("acme/web")).default == ""


@pytest.mark.parametrize("own", [("", None), ("", ()), (None, ("dc1",))], ids=["no default", "none at all", "fewer"])
def test_where_a_tenant_requires_a_class_its_descendants_do_too(own):
    tree = (tenant("acme", *SEED), tenant("acme/web", *own), tenant("acme/web/shop"))
    assert found(*tree).needs_class
    assert found(*tree, namespace="tenant-acme-web-shop").needs_class


def test_a_class_is_not_needed_where_nobody_above_restricts_or_has_a_default():
    assert not found(tenant("acme", "dc1"), tenant("acme/web", "")).needs_class
    assert not found(tenant("acme", None, ["dc1"]), tenant("acme/web", "")).needs_class


def test_where_a_tenant_holds_pods_without_application_to_its_classes_its_descendants_do_too():
    strict = tenant("acme", *SEED, spec={"unownedPods": "RequireAllowed"})
    lax = tenant("acme/web", spec={"unownedPods": "Allow"})
    tree = effective_policies((tenant("root"), strict, lax, tenant("acme/web/shop"), tenant("other")), CLASSES)
    held = {namespace for namespace, each in tree.items() if each.holds_unowned}
    assert held == {"tenant-acme", "tenant-acme-web", "tenant-acme-web-shop"}


def test_a_class_that_the_parent_does_not_allow_is_a_fault_and_not_effective():
    policy = found(tenant("acme", *SEED), tenant("acme/web", None, ["gpu", "dc1", "dc9"]))
    assert policy.allowed == ("dc1",)
    assert faults(policy) == [Reason.NOT_ALLOWED_BY_PARENT, Reason.AFFINITY_CLASS_NOT_FOUND]
    assert policy.faults[0].classes == (
        "gpu",
        "dc9",
    )
    assert policy.faults[0].allowed == (
        "dc1",
        "dc2",
    )
    assert policy.faults[1].classes == ("dc9",)


def test_a_class_that_a_grandparent_forbids_stays_forbidden():
    policy = found(
        tenant("acme", None, ["dc1"]),
        tenant("acme/web", None, ["dc1", "dc2"]),
        tenant("acme/web/shop", None, ["dc2"]),
        namespace="tenant-acme-web-shop",
    )
    assert policy.allowed == ()
    assert policy.faults[0].classes == ("dc2",)


def test_a_default_that_is_not_allowed_cannot_be_used():
    policy = found(tenant("acme", *SEED), tenant("acme/web", "gpu"))
    assert (policy.default, policy.usable_default) == ("gpu", "")
    assert policy.fault == "it is not one of the allowed classes dc1, dc2"
    assert faults(policy) == [Reason.DEFAULT_NOT_ALLOWED]


def test_an_inherited_default_that_the_child_does_not_allow_cannot_be_used_and_names_whose_it_is():
    policy = found(tenant("acme", *SEED), tenant("acme/web", None, ["dc2"]))
    assert policy.usable_default == ""
    assert policy.faults[0].source == "tenant-acme"


def test_a_default_without_allowed_classes_is_reported():
    assert found(tenant("acme", "dc1", []), namespace="tenant-acme").fault == "no class is allowed"


def test_classes_that_do_not_exist_are_named_and_stay_in_effect():
    policy = found(tenant("acme", "dc8", ["dc9", "dc8"]), namespace="tenant-acme")
    assert (policy.default, policy.allowed, policy.fault) == ("dc8", ("dc9", "dc8"), "")
    assert policy.faults[0].classes == (
        "dc8",
        "dc9",
    )


def test_a_class_that_is_missing_is_the_fault_of_who_names_it_alone():
    assert found(tenant("acme", "dc9"), tenant("acme/web")).faults == ()


def test_without_a_tenant_the_top_restricts_nothing():
    policy = effective_policies([], CLASSES)[names.TENANT_ROOT]
    assert (policy.tenant, policy.default, policy.allowed) == (None, "", None)


def test_the_top_restricts_all_below():
    tree = effective_policies([tenant("acme"), tenant("root", "dc1", ["dc1"])], CLASSES)
    assert tree["tenant-acme"].allowed == tree[names.TENANT_ROOT].allowed == ("dc1",)
    assert tree["tenant-acme"].default == "dc1"


def test_a_tenant_without_a_parent_has_nothing_and_neither_have_those_below():
    tree = effective_policies([tenant("gone/web", "dc1", ["dc1"]), tenant("gone/web/shop")], CLASSES)
    for namespace in ("tenant-gone-web", "tenant-gone-web-shop"):
        policy = tree[namespace]
        assert (policy.allowed, policy.usable_default) == ((), "")
        assert faults(policy) == [Reason.PARENT_MISSING]
        assert policy.faults[0].missing == "tenant-gone"


@pytest.mark.parametrize("intruder", ["acme-web", "Acme", "9lives"])
def test_a_tenant_with_an_invalid_name_takes_no_namespace_of_another(intruder):
    real = tenant("acme/web", None, ["dc1"])
    tree = effective_policies([tenant(intruder, "gpu", ["gpu"]), tenant("acme"), real], CLASSES)
    assert set(tree) == {names.TENANT_ROOT, "tenant-acme", "tenant-acme-web"}
    assert tree["tenant-acme-web"].tenant is real


def test_the_order_of_the_tenants_does_not_matter():
    tenants = [tenant("root"), tenant("acme", *SEED), tenant("acme/web", None, ["gpu"]), tenant("zoo")]
    assert effective_policies(tenants, CLASSES) == effective_policies(reversed(tenants), CLASSES)
