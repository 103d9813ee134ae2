"""Inheritance over any tree of tenants, compared with a naive model."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders.tenants import planned, secret, settled, snapshot, tenant, values_of

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.inheritance import effective_policies, name_faults, parent_of
from nodeyard.capabilities.affinity.reasons import Reason

WORDS = ("a", "b", "root")
CLASSES = ("c1", "c2", "c3", "c4")
PATHS = tuple(
    path
    for one in WORDS
    for two in (None, *WORDS)
    for three in (None, *WORDS)
    if (path := "/".join(filter(None, (one, two, three)))) and (two or not three) and not path.startswith("root/")
)
defaults = st.one_of(st.none(), st.just(""), st.sampled_from(CLASSES))
lists = st.one_of(st.none(), st.lists(st.sampled_from(CLASSES), max_size=4))


@st.composite
def trees(draw):
    """Some of the tenants, in any order: parents may be missing."""
    chosen = draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=14))
    return [tenant(path, draw(defaults), draw(lists)) for path in chosen]


def above(each, tenants):
    """Return the parent's Tenant; None for `tenant-root`, and below it if it has no Tenant."""
    if each.own_namespace == names.TENANT_ROOT:
        return None
    return next((other for other in tenants if other.own_namespace == each.namespace), None)


def is_orphan(each, tenants):
    if each.namespace == names.TENANT_ROOT:
        return False
    parent = above(each, tenants)
    return parent is None or is_orphan(parent, tenants)


def model_default(each, tenants):
    if each is None:
        return ""
    own = each.spec.default_affinity_class
    return own if own is not None else model_default(above(each, tenants), tenants)


def model_allowed(each, tenants):
    if each is None:
        return None
    own, parent = each.spec.allowed_affinity_classes, model_allowed(above(each, tenants), tenants)
    if own is None or parent is None:
        return parent if own is None else set(own)
    return set(own) & parent


@given(trees())
def test_effective_classes_equal_the_intersection_over_all_ancestors(tenants):
    found = effective_policies(tenants, frozenset(CLASSES))
    assert set(found) == {names.TENANT_ROOT, *(each.own_namespace for each in tenants)}
    for each in tenants:
        policy = found[each.own_namespace]
        if is_orphan(each, tenants):
            assert (policy.allowed, policy.usable_default) == ((), "")
            continue
        allowed = model_allowed(each, tenants)
        assert (None if policy.allowed is None else set(policy.allowed)) == allowed
        assert policy.default == model_default(each, tenants)
        is_usable = allowed is None or not policy.default or policy.default in allowed
        assert bool(policy.fault) is not is_usable


@given(trees())
def test_effective_classes_are_a_subset_of_the_parents(tenants):
    found = effective_policies(tenants, frozenset(CLASSES))
    for each in tenants:
        policy, parent = found[each.own_namespace], found.get(each.namespace)
        if policy.allowed is not None and policy.usable_default:
            assert policy.usable_default in policy.allowed
        if parent is not None and parent.allowed is not None:
            assert policy.allowed is not None
            assert set(policy.allowed) <= set(parent.allowed)


@given(trees())
def test_every_class_that_a_tenant_lists_is_in_effect_or_named_in_a_fault(tenants):
    for policy in effective_policies(tenants, frozenset(CLASSES)).values():
        if policy.tenant is None or any(each.reason is Reason.PARENT_MISSING for each in policy.faults):
            continue
        refused = {
            name for each in policy.faults if each.reason is Reason.NOT_ALLOWED_BY_PARENT for name in each.classes
        }
        own = policy.tenant.spec.allowed_affinity_classes
        assert own is None or set(own) == set(policy.allowed) | refused


@settings(max_examples=40, deadline=None)
@given(trees())
def test_the_values_of_a_child_never_have_what_its_parent_refuses_and_planning_converges(tenants):
    world = settled(snapshot(*tenants, classes=frozenset(CLASSES), secrets=[secret(names.TENANT_ROOT, "")]))
    found = effective_policies(tenants, frozenset(CLASSES))
    assert planned(world).plan.actions == ()
    for each in tenants:
        if is_orphan(each, tenants):
            assert each.own_namespace not in world.values
            continue
        said = values_of(world.values[each.own_namespace])["_namespace"]
        parent = found[each.namespace].allowed
        named = {*said.get("allowedAffinityClasses", ()), said.get("defaultAffinityClass")} - {None}
        assert parent is None or named <= set(parent)


LETTERS = st.text(alphabet="ab", min_size=1, max_size=3)
PLACES = st.tuples(st.lists(LETTERS, max_size=3), LETTERS)


def placed(place):
    above, name = place
    namespace = names.TENANT_ROOT
    for each in above:
        namespace = names.tenant_namespace(namespace, each)
    return namespace, name


@given(PLACES, PLACES)
def test_no_two_tenants_that_are_well_named_have_one_namespace(one, other):
    first, second = placed(one), placed(other)
    assert not name_faults(*first)
    assert (names.tenant_namespace(*first) == names.tenant_namespace(*second)) is (first == second)
    assert parent_of(names.tenant_namespace(*first)) == first
