"""Placement of pods: decisions and messages."""

from dataclasses import replace

import msgspec
import pytest
from tests.builders.applications import NAMESPACE, ZONE, affinity_class, policy
from tests.builders.placements import body, pod, release, terms

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.class_record import Record
from nodeyard.capabilities.affinity.planning.inheritance import EffectivePolicy
from nodeyard.capabilities.affinity.planning.lineage import (
    Owned,
    OwningRelease,
    Step,
    Unknown,
    Unowned,
    application_of,
    walk,
)
from nodeyard.capabilities.affinity.planning.placement import Decision, Subject, is_exempt, place
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.node_affinity import Affinity
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.webhooks import Cause, Unreadable

DC1 = {ZONE: "dc1"}
DC2 = {ZONE: "dc2"}
EITHER = affinity_class("either", {}, nodeAffinity=terms((ZONE, "In", ["dc1"]), (ZONE, "In", ["dc2"])))


class Around:
    def __init__(self, *classes, here=(), labels=None, policy=None, nodes=()):
        self._classes = {each.name: each for each in classes}
        self._here, self._labels, self._standing = here, labels or {}, policy or EffectivePolicy()
        self._nodes = {each.name: each for each in nodes}

    def nodes(self):
        return self._nodes.values()

    def node(self, name):
        return self._nodes.get(name)

    def affinity_class(self, name):
        return self._classes.get(name)

    def classes(self):
        return self._classes

    def classes_here(self):
        return self._here

    def namespace_labels(self):
        return self._labels

    def policy(self):
        return self._standing


def subject(node_selector=None, affinity=None):
    required = msgspec.convert({"nodeAffinity": affinity}, Affinity).required_nodes if affinity else None
    return Subject("pod tenant-acme/main-db-1", NAMESPACE, node_selector or {}, required)


def owned(*, previous=(), is_recorded=True, **given):
    """Build the owner of a pod: an application whose record has the class of its release unless there is none."""
    return Owned(*claim(previous=previous, is_recorded=is_recorded, **given))


def claim(*, previous=(), is_recorded=True, **given):
    found = release(**given)
    metadata = msgspec.convert(found["metadata"], ObjectMeta)
    ref = ObjectRef(api_version=found["apiVersion"], kind=found["kind"], name=metadata.name, namespace=NAMESPACE)
    name = metadata.labels.get(names.AFFINITY_CLASS, "")
    record = Record(uid="u", release=ref.name, affinity_class=name, source="explicit", previous=tuple(previous))
    return OwningRelease(Step(ref, metadata), application_of(ref, metadata.labels), record if is_recorded else None)


def unknown():
    start = pod("p", [body("postgresql.cnpg.io/v1", "Cluster", "main")])
    metadata = msgspec.convert(start["metadata"], ObjectMeta)
    ref = ObjectRef(api_version="v1", kind="Pod", name="p", namespace=NAMESPACE)
    found = walk(ref, metadata, lambda _: Unreadable("may not get clusters.postgresql.cnpg.io", Cause.FORBIDDEN))
    assert isinstance(found, Unknown)
    return found


# pods of an application


def test_a_pod_that_asks_for_the_nodes_of_its_class_is_allowed():
    placement = place(subject(DC1), owned(), Around(affinity_class("dc1")))

    assert (placement.decision, placement.reason, placement.affinity_class) == (
        Decision.ALLOWED,
        Reason.INSIDE_CLASS,
        "dc1",
    )
    assert (placement.violation, placement.warnings) == ("", ())


@pytest.mark.parametrize("selector", [None, DC2, {"disk": "ssd"}], ids=["none", "another value", "another key"])
def test_a_missing_node_selector_is_refused_with_the_message_of_the_design(selector):
    placement = place(subject(selector), owned(), Around(affinity_class("dc1")))

    assert placement.decision is Decision.DENIED
    assert placement.reason is Reason.MISSING_NODE_SELECTOR
    assert placement.violation.startswith(
        'pod tenant-acme/main-db-1 belongs to application with AffinityClass "dc1" but missing required nodeSelector '
        "topology.kubernetes.io/zone=dc1"
    )


def test_a_refusal_names_the_value_that_the_pod_has_and_a_node_that_it_could_reach():
    nodes = [ObjectMeta(name=f"n-{zone}", labels={ZONE: zone}) for zone in ("dc1", "dc2", "dc3")]
    around = Around(affinity_class("dc1"), nodes=nodes)

    other = place(subject(DC2), owned(), around).violation
    assert other.endswith("; its nodeSelector has topology.kubernetes.io/zone=dc2 and it could run on node n-dc2")
    assert place(subject(), owned(), around).violation.endswith("zone=dc1; it could run on node n-dc2")
    assert place(subject({"disk": "ssd"}), owned(), around).violation.endswith("topology.kubernetes.io/zone=dc1")


def test_a_missing_class_is_refused_with_the_message_of_the_design():
    placement = place(subject(DC1), owned(), Around())

    assert (placement.decision, placement.violation) == (Decision.DENIED, 'AffinityClass "dc1" not found')


def test_an_application_without_a_class_may_run_anywhere():
    placement = place(subject(), owned(affinity_class=None), Around())

    assert (placement.decision, placement.reason) == (Decision.ALLOWED, Reason.APPLICATION_WITHOUT_CLASS)


def test_required_affinity_is_as_good_as_a_node_selector():
    assert place(subject(affinity=terms((ZONE, "In", ["dc1"]))), owned(), Around(affinity_class("dc1"))).is_inside


def test_a_class_of_several_places_is_checked_as_a_whole():
    around = Around(EITHER)

    assert place(
        subject(affinity=terms((ZONE, "In", ["dc1", "dc2"]))), owned(affinity_class="either"), around
    ).is_inside
    outside = place(subject(affinity=terms((ZONE, "In", ["dc1", "dc3"]))), owned(affinity_class="either"), around)
    assert outside.reason is Reason.OUTSIDE_CLASS
    assert outside.violation == (
        'pod tenant-acme/main-db-1 belongs to application with AffinityClass "either" but could run outside it, '
        "for example on a node with topology.kubernetes.io/zone=dc3"
    )


def test_a_label_that_a_node_may_lack_is_reported():
    placement = place(subject(), owned(affinity_class="either"), Around(EITHER))

    assert placement.violation.endswith("for example on a node with no label topology.kubernetes.io/zone")


def test_a_placement_that_cannot_be_decided_in_time_is_denied():
    keys = [f"k{number}" for number in range(24)]
    wide = affinity_class("wide", {}, nodeAffinity=terms(*((key, "In", ["a"]) for key in keys)))
    many = terms(*((f"k{n % 24}", "In", [f"v{m}" for m in range(50)]) for n in range(200)))

    placement = place(subject(affinity=many), owned(affinity_class="wide"), Around(wide))

    assert (placement.decision, placement.reason) == (Decision.DENIED, Reason.TOO_COMPLEX)


def test_a_pod_that_cannot_be_scheduled_is_admitted_with_a_warning():
    placement = place(subject(DC2, terms((ZONE, "In", ["dc3"]))), owned(), Around(affinity_class("dc1")))

    assert (placement.decision, placement.reason) == (Decision.ALLOWED, Reason.UNSATISFIABLE)
    assert len(placement.warnings) == 1


# enforcement


@pytest.mark.parametrize(
    ("enforcement", "decision", "warns"),
    [("Deny", Decision.DENIED, False), ("Warn", Decision.WARNED, True), ("Audit", Decision.AUDITED, False)],
)
def test_the_class_sets_its_enforcement(enforcement, decision, warns):
    placement = place(subject(), owned(), Around(affinity_class("dc1", enforcement=enforcement)))

    assert placement.decision is decision
    assert placement.violation
    assert placement.warnings == ((placement.violation,) if warns else ())


@pytest.mark.parametrize(
    ("own", "permits", "label", "decision"),
    [
        ("Deny", True, "Warn", Decision.WARNED),
        ("Deny", True, "Audit", Decision.AUDITED),
        ("Deny", False, "Warn", Decision.DENIED),
        ("Warn", True, "Deny", Decision.WARNED),
        ("Audit", True, "Warn", Decision.AUDITED),
        ("Deny", True, "whatever", Decision.DENIED),
    ],
    ids=["weakened", "weakened more", "not permitted", "not hardened", "not hardened either", "nonsense"],
)
def test_a_namespace_may_only_weaken_and_only_where_it_is_permitted(own, permits, label, decision):
    meant = affinity_class("dc1", enforcement=own, allowNamespaceOverride=permits)

    assert place(subject(), owned(), Around(meant, labels={names.ENFORCEMENT: label})).decision is decision


# change of class


def test_pods_of_the_class_before_are_admitted_until_the_release_is_ready():
    around = Around(affinity_class("dc1"), affinity_class("dc2"))
    changing = owned(affinity_class="dc2", previous=["dc1"])

    before = place(subject(DC1), changing, around)
    assert (before.decision, before.reason, before.affinity_class) == (
        Decision.ALLOWED,
        Reason.INSIDE_PREVIOUS_CLASS,
        "dc1",
    )
    assert place(subject(DC2), changing, around).affinity_class == "dc2"
    assert place(subject({ZONE: "dc3"}), changing, around).decision is Decision.DENIED


def test_pods_of_all_classes_before_are_admitted_where_it_changed_more_than_once():
    around = Around(*(affinity_class(name) for name in ("dc1", "dc2", "dc3")))
    changing = owned(affinity_class="dc3", previous=["dc2", "dc1"])

    found = [place(subject({ZONE: zone}), changing, around) for zone in ("dc1", "dc2", "dc3", "dc4")]
    assert [each.affinity_class for each in found[:3]] == ["dc1", "dc2", "dc3"]
    assert [each.decision for each in found] == [*[Decision.ALLOWED] * 3, Decision.DENIED]


def test_where_there_was_no_class_before_any_pod_is_admitted_until_then():
    placement = place(subject(), owned(previous=[""]), Around(affinity_class("dc1")))

    assert (placement.decision, placement.affinity_class) == (Decision.ALLOWED, "")


def test_a_deleted_previous_class_admits_no_pod():
    assert not place(
        subject(DC1), owned(affinity_class="dc2", previous=["dc1"]), Around(affinity_class("dc2"))
    ).is_allowed


# pods of no application


def test_pods_without_application_may_run_anywhere_unless_their_tenant_restricts_them():
    assert place(subject(), Unowned(), Around()).reason is Reason.UNOWNED_ALLOWED
    assert place(subject(), Unowned(), Around(policy=policy())).reason is Reason.UNOWNED_ALLOWED


def strict(allowed):
    told = policy(allowed=allowed)
    tenant = told.tenant
    return EffectivePolicy(
        tenant=msgspec.structs.replace(
            tenant, spec=msgspec.convert({"unownedPods": "RequireAllowed"}, type(tenant.spec))
        ),
        allowed=allowed,
    )


def test_a_pod_without_application_is_held_to_what_a_tenant_above_requires():
    around = Around(affinity_class("dc1"), policy=replace(policy(allowed=("dc1",)), holds_unowned_above=True))
    assert place(subject(), Unowned(), around).reason is Reason.UNOWNED_REFUSED
    assert place(subject(DC1), Unowned(), around).is_allowed


@pytest.mark.parametrize(
    ("allowed", "selector", "is_allowed"),
    [
        (("dc1", "dc2"), DC2, True),
        (("dc1",), DC2, False),
        (None, DC2, True),
        (None, {"disk": "ssd"}, False),
        ((), DC1, False),
        (("gone",), DC1, False),
    ],
    ids=["one of them", "another", "all are allowed", "none fits", "none is allowed", "it is not there"],
)
def test_a_tenant_may_hold_pods_without_application_to_an_allowed_class(allowed, selector, is_allowed):
    around = Around(affinity_class("dc1"), affinity_class("dc2"), policy=strict(allowed))

    assert place(subject(selector), Unowned(), around).is_allowed is is_allowed


def test_the_refusal_names_the_classes():
    around = Around(affinity_class("dc1"), policy=strict(("dc1", "dc2")))

    assert place(subject(), Unowned(), around).violation == (
        "pod tenant-acme/main-db-1 belongs to no application, and tenant acme requires such pods to fit one of the "
        "AffinityClasses dc1, dc2"
    )


# pods of an unknown application


def test_a_pod_that_might_be_of_a_class_it_is_outside_of_is_refused_and_the_missing_right_named():
    placement = place(subject(DC2), unknown(), Around(affinity_class("dc1"), here=["dc1"]))

    assert (placement.decision, placement.reason) == (Decision.DENIED, Reason.OWNER_FORBIDDEN)
    assert "may not get clusters.postgresql.cnpg.io" in placement.violation
    assert '"dc1", which it is outside of' in placement.violation


def test_the_enforcement_of_a_possible_class_counts_too():
    around = Around(affinity_class("dc1", enforcement="Warn"), here=["dc1"])

    assert place(subject(), unknown(), around).decision is Decision.WARNED


@pytest.mark.parametrize("names_of", [("soft", "hard"), ("hard", "soft")], ids="-".join)
def test_the_strictest_enforcement_of_the_possible_classes_counts_whatever_their_names(names_of):
    first, second = sorted(names_of)
    meant = {names_of[0]: "Warn", names_of[1]: "Deny"}
    classes = [affinity_class(each, DC1, enforcement=meant[each]) for each in (first, second)]

    placement = place(subject(), unknown(), Around(*classes, here=[first, second]))

    assert (placement.decision, placement.affinity_class) == (Decision.DENIED, names_of[1])


def test_the_rule_of_the_tenant_for_pods_without_application_counts_over_a_class_that_only_warns():
    around = Around(affinity_class("dc1", enforcement="Warn"), here=["dc1"], policy=strict(("dc1",)))

    assert place(subject(DC2), unknown(), around).decision is Decision.DENIED


@pytest.mark.parametrize("here", [(), ("dc1",)], ids=["no class is in use there", "it keeps to all of them"])
def test_a_pod_that_every_possible_class_allows_is_admitted_with_a_warning(here):
    placement = place(subject(DC1), unknown(), Around(affinity_class("dc1"), here=here))

    assert (placement.decision, placement.reason) == (Decision.ALLOWED, Reason.OWNER_FORBIDDEN)
    assert "it would be allowed whichever it is" in placement.warnings[0]


def test_a_pod_that_may_be_without_application_is_held_to_the_rule_for_those():
    around = Around(affinity_class("dc1"), policy=strict(("dc1",)))

    assert place(subject(DC2), unknown(), around).decision is Decision.DENIED


# pods of several applications


REDIS = {"name": "redis-cache", "of": ("Redis", "cache")}


def test_several_releases_are_warned_about():
    placement = place(subject(DC1), Owned(*claim(), others=(claim(**REDIS),)), Around(affinity_class("dc1")))

    assert placement.warnings == (
        "pod tenant-acme/main-db-1 belongs to several HelmReleases and must fit the classes of all of them: "
        "postgres-main-db (Postgres main-db), redis-cache (Redis cache)",
    )


@pytest.mark.parametrize("is_first", [True, False], ids=["the lax one first", "the lax one second"])
def test_the_classes_of_all_owners_hold(is_first):
    lax, bound = claim(affinity_class=None, is_recorded=False, **REDIS), claim()
    first, second = (lax, bound) if is_first else (bound, lax)
    around = Around(affinity_class("dc1"))

    placement = place(subject(), Owned(*first, others=(second,)), around)

    assert (placement.decision, placement.reason) == (Decision.DENIED, Reason.MISSING_NODE_SELECTOR)
    inside = place(subject(DC1), Owned(*first, others=(second,)), around)
    assert (inside.decision, inside.affinity_class) == (Decision.ALLOWED, "dc1")


def test_an_owner_that_cannot_be_read_is_unknown_beside_one_that_was_found():
    found = Owned(*claim(affinity_class=None), dead_ends=(unknown().obstacle,))

    placement = place(subject(DC2), found, Around(affinity_class("dc1"), here=["dc1"]))

    assert (placement.decision, placement.reason) == (Decision.DENIED, Reason.OWNER_FORBIDDEN)
    harmless = place(subject(DC1), found, Around(affinity_class("dc1"), here=["dc1"]))
    assert "it would be allowed whichever it is" in harmless.warnings[0]


# releases that no Application backs


def test_a_class_that_only_the_release_names_has_to_be_allowed():
    around = Around(affinity_class("dc1"), affinity_class("dc2"), policy=policy(allowed=("dc2",)))

    refused = place(subject(DC1), owned(is_recorded=False), around)

    assert (refused.decision, refused.reason) == (Decision.DENIED, Reason.RELEASE_CLASS_NOT_ALLOWED)
    assert place(subject(DC1), owned(), around).is_inside, "a class that was withdrawn stays where it is recorded"
    assert place(subject(DC2), owned(affinity_class="dc2", is_recorded=False), around).is_inside


def test_a_release_without_a_class_follows_the_tenants_rule():
    loose = owned(affinity_class=None, is_recorded=False)
    needs = Around(affinity_class("dc1"), policy=policy("dc1", ("dc1",)))

    assert place(subject(), loose, Around()).is_allowed
    assert place(subject(), loose, needs).reason is Reason.APPLICATION_WITHOUT_CLASS_REFUSED
    assert place(subject(DC1), loose, needs).is_inside
    # Recorded: the application had no class before the tenant required one.
    assert place(subject(), owned(affinity_class=None), needs).reason is Reason.APPLICATION_WITHOUT_CLASS
    strictly = Around(affinity_class("dc1"), policy=strict(("dc1",)))
    for each in (loose, owned(affinity_class=None), owned(previous=[""])):
        assert not place(subject(), each, strictly).is_allowed


def test_a_previous_class_that_a_release_shows_does_not_count():
    shown = {names.PREVIOUS_CLASS: ""}

    assert not place(subject(), owned(is_recorded=False, labels=shown), Around(affinity_class("dc1"))).is_allowed


# spec.nodeName


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ("n-dc1", Reason.INSIDE_CLASS),
        ("n-dc2", Reason.NODE_NAME_OUTSIDE_CLASS),
        ("unheard-of", Reason.NODE_NAME_OUTSIDE_CLASS),
    ],
)
def test_a_node_name_has_to_be_in_the_class(node, reason):
    nodes = [ObjectMeta(name=f"n-{zone}", labels={ZONE: zone}) for zone in ("dc1", "dc2")]
    around = Around(affinity_class("dc1"), nodes=nodes)

    assert place(subject(DC1)._replace(node_name=node), owned(), around).reason is reason
    contradictory = subject(DC2, terms((ZONE, "In", ["dc3"])))._replace(node_name="n-dc2")
    assert place(contradictory, owned(), around).decision is Decision.DENIED
    assert place(subject()._replace(node_name="n-dc1"), owned(), around).decision is Decision.DENIED


def test_exempt_pods_are_admitted():
    assert is_exempt("kube-system", {})
    assert is_exempt("nodeyard-system", {})
    assert is_exempt("cozy-system", {names.SYSTEM_NAMESPACE: "true"})
    assert not is_exempt(NAMESPACE, {names.SYSTEM_NAMESPACE: "false"})


def test_a_recreated_class_is_compiled_again():
    assert place(subject(DC1), owned(), Around(affinity_class("dc1"))).is_inside
    assert not place(subject(DC1), owned(), Around(affinity_class("dc1", {ZONE: "elsewhere"}))).is_inside
