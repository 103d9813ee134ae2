"""AffinityClasses: finalizer, users, checks and status."""

import msgspec
import pytest
from tests.builders.applications import NOW, ZONE, affinity_class, builder, definition_body
from tests.builders.placements import (
    PlacementView,
    affinity_class_body,
    body,
    node,
    pod,
    release,
    review,
    tenant,
    terms,
)

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collect.classes import users
from nodeyard.capabilities.affinity.planning.classes import (
    is_self_assignable,
    plan_class,
    selector_errors,
    self_assignable,
    violators,
)
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.status import class_events, status_class
from nodeyard.capabilities.affinity.reviews.classes import review_class
from nodeyard.capabilities.affinity.snapshot import ClassSnapshot
from nodeyard.capabilities.affinity.types import AffinityClass, ClassUser
from nodeyard.capabilities.affinity.watched import PlacedPod
from nodeyard.plan.model import Verb

USER = ClassUser(kind="Postgres", namespace="tenant-acme", name="main-db")
HELD = {"finalizers": ["other", names.CLASS_FINALIZER], "resourceVersion": "7"}
GOING = {**HELD, "deletionTimestamp": "2026-01-01T00:00:00Z"}


def planned(**given):
    metadata = given.pop("metadata", {})
    plan = builder()
    snapshot = ClassSnapshot(affinity_class("dc1", metadata=metadata), **given)
    plan_class(plan, snapshot)
    return plan


# finalizer


def test_a_used_class_gets_a_finalizer():
    plan = planned(users=[USER], metadata={"finalizers": ["other"], "resourceVersion": "7"})

    assert [each.reason for each in plan.actions] == [Reason.FINALIZER_ADDED]
    write = plan.writes[plan.actions[0].id]
    assert write.body == {"metadata": {"finalizers": ["other", names.CLASS_FINALIZER]}}
    assert write.resource_version == "7"


@pytest.mark.parametrize("metadata", [HELD, GOING], ids=["stays", "is deleted"])
def test_an_unused_class_loses_its_finalizer(metadata):
    plan = planned(metadata=metadata)

    assert [(each.verb, each.reason) for each in plan.actions] == [(Verb.PATCH, Reason.FINALIZER_REMOVED)]
    assert plan.writes[plan.actions[0].id].body == {"metadata": {"finalizers": ["other"]}}


def test_a_used_class_is_not_deleted_and_names_its_users():
    plan = planned(users=[USER], metadata=GOING)

    assert plan.actions == []
    assert [(each.reason, list(each.facts.users)) for each in plan.blocked] == [
        (Reason.AFFINITY_CLASS_IN_USE, ["Postgres tenant-acme/main-db"])
    ]


@pytest.mark.parametrize("given", [{}, {"users": [USER], "metadata": HELD}], ids=["unused and free", "used and held"])
def test_an_unchanged_class_needs_no_actions(given):
    plan = planned(**given)

    assert (plan.actions, plan.blocked) == ([], [])


# users


def test_tenants_applications_and_releases_use_a_class():
    view = PlacementView(
        tenant("acme", allowedAffinityClasses=["dc1", "dc2"]),
        tenant("other", defaultAffinityClass="dc2"),
        body(names.APPS_API_VERSION, "Postgres", "wanted", spec={"affinityClass": "dc1"}),
        release(),
        release("redis-cache", of=("Redis", "cache"), affinity_class="dc2", previous="dc1"),
        release("plain", of=None),
        definition_body("Postgres"),
        definition_body("Redis"),
    )

    assert [f"{each.kind} {each.namespace}/{each.name}" for each in users(view, "dc1")] == [
        "HelmRelease tenant-acme/plain",
        "Postgres tenant-acme/main-db",
        "Postgres tenant-acme/wanted",
        "Redis tenant-acme/cache",
        "Tenant tenant-root/acme",
    ]


def test_a_tenant_is_a_user_also_where_a_definition_declares_tenants_as_cozystack_does():
    view = PlacementView(tenant("acme", allowedAffinityClasses=["dc1"]), definition_body("Tenant"))

    assert [f"{each.kind} {each.namespace}/{each.name}" for each in users(view, "dc1")] == ["Tenant tenant-root/acme"]


def test_an_application_and_its_release_are_one_user():
    app = body(names.APPS_API_VERSION, "Postgres", "main-db", spec={"affinityClass": "dc1"})

    assert len(users(PlacementView(app, release(), definition_body("Postgres")), "dc1")) == 1


# checks


def test_the_deletion_of_a_class_in_use_is_refused_with_the_list():
    response = review_class(review(affinity_class_body("dc1"), operation="DELETE"), PlacementView(release()))

    assert not response.is_allowed
    assert response.message == (
        'AffinityClass "dc1" is in use by 1 object: Postgres tenant-acme/main-db; move them to another class first'
    )


def test_a_long_list_is_cut():
    view = PlacementView(*(release(f"postgres-db{n:02}", of=("Postgres", f"db{n:02}")) for n in range(12)))

    message = review_class(review(affinity_class_body("dc1"), operation="DELETE"), view).message

    assert "in use by 12 objects" in message
    assert message.count("Postgres tenant-acme/") == 10
    assert "and 2 more" in message


def test_the_deletion_of_another_class_is_not():
    assert review_class(review(affinity_class_body("dc2"), operation="DELETE"), PlacementView(release())).is_allowed


def test_a_pending_deletion_can_be_requested_again():
    going = affinity_class_body("dc1")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert review_class(review(going, operation="DELETE"), PlacementView(release())).is_allowed


REQUIRED = "spec.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"nodeAffinity": terms(("cores", "Gt", ["many"]))}, "the value must be an integer"),
        ({"nodeAffinity": terms(("cores", "In", []))}, "must be specified when `operator` is 'In' or 'NotIn'"),
        ({"nodeAffinity": terms(("cores", "Around", ["1"]))}, "not a valid selector operator"),
        ({"nodeAffinity": terms()}, "must have at least one node selector term"),
        ({"nodeSelector": {"a/b/c": "x"}}, "a valid label key must consist of"),
        ({"nodeSelector": {"zone": "not a value"}}, 'spec.nodeSelector[zone]: Invalid value: "not a value"'),
        ({"nodeAffinity": {REQUIRED.rpartition(".")[2]: {"nodeSelectorTerms": "x"}}}, "Expected `array | null`"),
    ],
    ids=["no number", "no values", "no operator", "no terms", "no key", "no value", "no list"],
)
def test_selectors_that_could_never_match_are_refused(spec, said):
    response = review_class(review(affinity_class_body("dc1", **({"node_selector": {}} | _own(spec)))), PlacementView())

    assert (response.is_allowed, response.code) == (False, 422)
    assert said in response.message


def _own(spec):
    return {"node_selector" if key == "nodeSelector" else key: value for key, value in spec.items()}


def test_a_name_that_is_no_label_value_is_refused():
    assert "must be no more than 63" in review_class(review(affinity_class_body("a" * 64, {})), PlacementView()).message


def test_faults_from_before_an_update_are_only_warnings():
    old = affinity_class_body("dc1", {"zone": "not a value"})
    new = affinity_class_body("dc1", {"zone": "not a value"}, enforcement="Warn")

    response = review_class(review(new, operation="UPDATE", old=old), PlacementView())

    assert response.is_allowed
    assert response.warnings[0].endswith("allowed because it was already so before this change")


def test_labels_that_nodes_can_give_themselves_are_warned_about():
    view = PlacementView(node("n1", "dc1"))

    assert review_class(review(affinity_class_body("dc1")), view).warnings == (
        "kubelets can set topology.kubernetes.io/zone on their own nodes: a compromised node can join AffinityClass "
        '"dc1"; for isolation, use labels under node-restriction.kubernetes.io/',
    )


def test_an_enforcement_change_repeats_no_warning():
    new = affinity_class_body("dc1", enforcement="Warn")

    assert review_class(review(new, operation="UPDATE", old=affinity_class_body("dc1")), PlacementView()).warnings == ()


def test_a_class_without_nodes_or_limits_is_warned_about():
    nowhere = review_class(review(affinity_class_body("dc9")), PlacementView(node("n1", "dc1"))).warnings
    everywhere = review_class(review(affinity_class_body("all", {})), PlacementView(node("n1", "dc1"))).warnings

    assert nowhere[-1] == "No node matches the class: its pods stay pending"
    assert everywhere == ('AffinityClass "all" requires nothing: it contains every node and restricts no pod',)


@pytest.mark.parametrize(
    ("key", "is_assignable"),
    [
        ("topology.kubernetes.io/zone", True),
        ("kubernetes.io/hostname", True),
        ("node.kubernetes.io/gpu", True),
        ("x.node.kubernetes.io/gpu", True),
        ("kubelet.kubernetes.io/x", True),
        ("example.dev/gpu", True),
        ("gpu", True),
        ("node-restriction.kubernetes.io/gpu", False),
        ("acme.node-restriction.kubernetes.io/gpu", False),
        ("node-role.kubernetes.io/gpu", False),
        ("x.k8s.io/gpu", False),
        ("notkubernetes.io/gpu", True),
    ],
)
def test_which_labels_a_kubelet_may_set(key, is_assignable):
    assert is_self_assignable(key) is is_assignable


def test_keys_of_terms_count_too():
    spec = affinity_class(
        "x", {}, nodeAffinity=terms(("gpu", "Exists", []), ("node-role.kubernetes.io/x", "Exists", []))
    )

    assert self_assignable(spec.spec) == ["gpu"]
    assert selector_errors(spec.spec) == []


# status


def status(before=None, **given):
    plan = builder()
    snapshot = ClassSnapshot(
        before or affinity_class("dc1", metadata={"generation": 3, **given.pop("metadata", {})}), **given
    )
    plan_class(plan, snapshot)
    writes = status_class(snapshot, plan.planned("affinity", "class/dc1").plan, Outcome(), NOW)
    return writes[0].status if writes else None


def conditions(found):
    return {each["type"]: (each["status"], each["reason"]) for each in found["conditions"]}


def test_nodes_by_zone_and_users_are_reported():
    found = status(zones={"b": 2, "a": 1}, users=[USER] * 120, violators=["tenant-acme/p"])

    assert (found["nodes"], found["users"], len(found["inUseBy"]), found["violators"]) == (3, 120, 100, 1)
    assert found["zones"] == [{"zone": "a", "nodes": 1}, {"zone": "b", "nodes": 2}]
    assert found["observedGeneration"] == 3
    assert conditions(found) == {"Ready": ("True", "NodesMatch"), "NodesMatch": ("True", "NodesMatch")}
    assert found["conditions"][0]["message"] == "3 nodes in the class: 1 in a, 2 in b"


def test_a_class_without_nodes_is_not_ready():
    assert conditions(status()) == {"Ready": ("False", "NoNodeMatches"), "NodesMatch": ("False", "NoNodeMatches")}


def test_a_class_that_waits_for_its_users_reports_it():
    found = status(zones={"a": 1}, users=[USER], metadata=GOING)

    assert conditions(found)["Ready"] == ("False", "AffinityClassInUse")
    assert "Postgres tenant-acme/main-db" in found["conditions"][0]["message"]


def test_a_class_warns_that_only_releases_can_use_it_while_cozystack_serves_tenants():
    found = status(zones={"a": 1}, is_served_elsewhere=True)
    assert conditions(found) == {
        "Ready": ("True", "NodesMatch"),
        "NodesMatch": ("True", "NodesMatch"),
        "ReleasesOnly": ("True", "ServedByAPIService"),
    }
    told = msgspec.convert({"metadata": {"name": "dc1"}, "spec": {"nodeSelector": {ZONE: "dc1"}}, "status": found},
                           AffinityClass)  # fmt: skip

    assert "ReleasesOnly" not in conditions(status(told, zones={"a": 1}))


def test_invalid_selectors_that_are_stored_already_are_named():
    bad = affinity_class("dc1", {"zone": "not a value"})

    assert conditions(status(bad))["Ready"] == ("False", "InvalidSelector")


def test_an_unchanged_status_is_not_written():
    found = status(zones={"a": 1})
    same = msgspec.convert(
        {"metadata": {"name": "dc1", "generation": 3}, "spec": {"nodeSelector": {ZONE: "dc1"}}, "status": found},
        AffinityClass,
    )

    assert status(same, zones={"a": 1}) is None


def test_no_status_is_written_when_the_finalizer_is_removed():
    assert status(metadata=GOING) is None


def test_pods_outside_the_class_are_found_and_reported():
    pods = [
        msgspec.convert(pod("inside", spec={"nodeSelector": {ZONE: "dc1"}}), PlacedPod),
        msgspec.convert(pod("outside"), PlacedPod),
        msgspec.convert(pod("by-terms", spec={"affinity": {"nodeAffinity": terms((ZONE, "In", ["dc1"]))}}), PlacedPod),
    ]
    going = pod("going")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = violators(affinity_class("dc1"), [*pods, msgspec.convert(going, PlacedPod)])
    events = class_events(ClassSnapshot(affinity_class("dc1"), zones={"a": 1}, users=[USER], violators=found))

    assert found == ["tenant-acme/outside"]
    assert [(each.reason, each.is_standing, each.object) for each in events] == [
        ("PodsOutsideClass", True, affinity_class("dc1").ref)
    ]
    assert events[0].message == '1 running pod of AffinityClass "dc1" could run outside it: tenant-acme/outside'


def test_a_used_class_without_nodes_is_reported():
    events = class_events(ClassSnapshot(affinity_class("dc1"), users=[USER]))

    assert [each.reason for each in events] == ["NoNodeMatches"]


def test_unparsable_terms_match_nothing():
    odd = affinity_class("odd", {}, nodeAffinity={REQUIRED.rpartition(".")[2]: {"nodeSelectorTerms": "x"}})
    inside = PlacedPod(spec=msgspec.structs.replace(PlacedPod().spec, node_selector={"a": "b"}))

    assert violators(odd, [inside]) == ["/"]
