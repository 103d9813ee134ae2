"""Reviews of pods: labels of their application, and placement in its class."""

import msgspec
import pytest
from tests.builders.affinity_env import definition_body
from tests.builders.affinity_views import AffinityView
from tests.builders.applications import NAMESPACE, ZONE, api_service, with_record
from tests.builders.placements import (
    PlacementView,
    affinity_class_body,
    body,
    installed,
    namespace,
    pod,
    reference,
    release,
    review,
    tenant,
)

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reviews.pods import review_lineage, review_placement
from nodeyard.kube.objects import ObjectMeta, PartialObject
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.webhooks import Cause, Found, Lookup, Missing, Unreadable

DC1 = {"nodeSelector": {ZONE: "dc1"}}
DEPLOYMENT = installed("apps/v1", "Deployment", "main-db")
REPLICA_SET = body("apps/v1", "ReplicaSet", "main-db-5f", owners=[DEPLOYMENT])
VIEW = PlacementView(REPLICA_SET, DEPLOYMENT, release(), affinity_class_body("dc1"), namespace())
DUE = {
    names.MANAGED: "true",
    names.APPLICATION_GROUP: names.APPS_GROUP,
    names.APPLICATION_KIND: "Postgres",
    names.APPLICATION_NAME: "main-db",
    names.TENANT_RESOURCE: "false",
    names.AFFINITY_CLASS: "dc1",
}
FORGED = {
    names.MANAGED: "true",
    names.APPLICATION_NAME: "somebody-else",
    names.AFFINITY_CLASS: "gpu",
    names.TENANT_RESOURCE: "true",
}
CLUSTER = body("postgresql.cnpg.io/v1", "Cluster", "main")


def owner_ref(obj):
    metadata = obj["metadata"]
    named = {"kind": obj["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return ObjectRef(api_version=obj["apiVersion"], namespace=NAMESPACE, **named)


def answer(obj):
    return Found(PartialObject(metadata=msgspec.convert(obj["metadata"], ObjectMeta)))


def labels(response):
    return response.object["metadata"]["labels"]


# labels


def test_a_pod_of_an_application_gets_its_labels_and_its_class_label():
    response = review_lineage(review(pod(owners=[REPLICA_SET], labels={"app": "db"})), VIEW)

    assert response.is_allowed
    assert labels(response) == {"app": "db", **DUE}


def test_correct_labels_are_not_patched():
    assert review_lineage(review(pod(owners=[REPLICA_SET], labels=DUE)), VIEW).object is None


def test_a_class_label_set_by_a_user_is_overwritten():
    response = review_lineage(review(pod(owners=[REPLICA_SET], labels={"app": "db", **FORGED})), VIEW)

    assert labels(response) == {"app": "db", **DUE}


def test_a_class_label_on_a_pod_without_application_is_removed():
    assert labels(review_lineage(review(pod(labels={"app": "db", **FORGED})), VIEW)) == {"app": "db"}


def test_a_pod_without_application_and_without_our_labels_is_left_alone():
    assert review_lineage(review(pod()), VIEW).object is None


def test_a_long_group_is_cut_to_the_length_of_a_label():
    long = f"{'a' * 70}.example.dev"
    found = release(labels={names.APPLICATION_GROUP: long})
    found["metadata"]["labels"][names.APPLICATION_GROUP] = long

    response = review_lineage(review(pod(owners=[found])), PlacementView(found))

    assert labels(response)[names.APPLICATION_GROUP] == "a" * 63


def test_an_application_without_a_class_sets_no_class_label():
    bare = release(affinity_class=None)

    response = review_lineage(review(pod(owners=[bare], labels=FORGED)), PlacementView(bare))

    assert names.AFFINITY_CLASS not in labels(response)


@pytest.mark.parametrize(
    ("previous", "zone", "class_label"),
    [("dc1", "dc1", "dc1"), ("dc1", "dc2", "dc2"), ("dc1", "dc3", "dc2"), ("", "dc1", None)],
    ids=["keeps to the class before", "keeps to the class", "keeps to neither", "there was none before"],
)
def test_while_the_class_changes_the_class_label_names_the_class_that_the_pod_fits(previous, zone, class_label):
    app = body(names.APPS_API_VERSION, "Postgres", "main-db")
    changing = release(affinity_class="dc2", previous=previous, owners=[app])
    app = with_record(app, changing)
    view = PlacementView(app, changing, affinity_class_body("dc1"), affinity_class_body("dc2"), namespace())

    response = review_lineage(review(pod(owners=[changing], spec={"nodeSelector": {ZONE: zone}})), view)

    assert labels(response).get(names.AFFINITY_CLASS) == class_label


def test_an_owner_that_is_not_cached_is_looked_up():
    made = pod(owners=[CLUSTER])

    assert review_lineage(review(made), VIEW) == Lookup((owner_ref(CLUSTER),))
    found = installed("postgresql.cnpg.io/v1", "Cluster", "main")
    response = review_lineage(review(made, answers={owner_ref(CLUSTER): answer(found)}), VIEW)
    assert labels(response) == DUE


def test_an_owner_that_is_cached_as_another_is_looked_up_too():
    late = pod(owners=[])
    late["metadata"]["ownerReferences"] = [reference(REPLICA_SET, uid="newer")]

    response = review_lineage(review(late), VIEW)

    assert isinstance(response, Lookup)
    assert response.refs[0].uid == "newer"


def test_a_pod_with_an_unreadable_owner_loses_its_class_label():
    unread = {owner_ref(CLUSTER): Unreadable("no answer", Cause.TIMEOUT)}

    response = review_lineage(review(pod(owners=[CLUSTER], labels=FORGED), answers=unread), VIEW)

    assert response.is_allowed
    assert labels(response) == {}


def test_an_update_restores_removed_labels():
    old = pod(owners=[REPLICA_SET], labels=DUE)
    new = pod(owners=[REPLICA_SET], labels={"app": "db", names.AFFINITY_CLASS: "gpu"})

    assert labels(review_lineage(review(new, operation="UPDATE", old=old), VIEW)) == {"app": "db", **DUE}


def test_an_update_keeps_what_was_there_where_the_owner_cannot_be_read():
    unread = {owner_ref(CLUSTER): Unreadable("no answer", Cause.TIMEOUT)}
    old, new = pod(owners=[CLUSTER], labels=DUE), pod(owners=[CLUSTER], labels=FORGED)

    assert labels(review_lineage(review(new, operation="UPDATE", old=old, answers=unread), VIEW)) == DUE


def test_a_pod_that_is_being_deleted_is_left_alone():
    going = pod(owners=[REPLICA_SET], labels=FORGED)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert review_lineage(review(going, operation="UPDATE", old=going), VIEW).object is None


def test_with_cozystack_only_the_class_label_is_ours():
    view = PlacementView(REPLICA_SET, DEPLOYMENT, release(), affinity_class_body("dc1"), namespace(), api_service())
    theirs = {names.MANAGED: "true", names.APPLICATION_NAME: "main-db"}
    forged = {**theirs, names.AFFINITY_CLASS: "gpu"}
    unread = {owner_ref(CLUSTER): Unreadable("may not get clusters", Cause.FORBIDDEN)}

    owned = review_lineage(review(pod(owners=[REPLICA_SET], labels=forged)), view)
    assert labels(owned) == {**theirs, names.AFFINITY_CLASS: "dc1"}
    unknown = review(pod(owners=[CLUSTER], labels=forged), answers=unread)
    assert labels(review_lineage(unknown, view)) == theirs
    changed = review(pod(owners=[CLUSTER], labels=theirs), operation="UPDATE", old=pod(labels=forged), answers=unread)
    assert labels(review_lineage(changed, view)) == forged


# placement


def test_a_pod_that_keeps_to_its_class_is_admitted_and_counted():
    response = review_placement(review(pod(owners=[REPLICA_SET], spec=DC1)), VIEW)

    assert response.is_allowed
    assert response.facts == {
        "class": "dc1",
        "decision": "allowed",
        "reason": "InsideClass",
        "application": "Postgres/tenant-acme/main-db",
    }
    assert (response.warnings, response.events) == ((), ())


def test_a_pod_outside_its_class_is_refused_with_the_message_of_the_design():
    response = review_placement(review(pod(owners=[REPLICA_SET])), VIEW)

    assert not response.is_allowed
    assert response.message == (
        'pod tenant-acme/main-db-1 belongs to application with AffinityClass "dc1" but missing required nodeSelector '
        "topology.kubernetes.io/zone=dc1"
    )
    assert response.audit == {"decision": "denied", "reason": "MissingNodeSelector"}


def test_labels_that_a_pod_brings_do_not_excuse_it():
    assert not review_placement(review(pod(owners=[REPLICA_SET], labels=DUE)), VIEW).is_allowed


def test_a_pod_that_names_its_node_is_not_excused_either():
    assert not review_placement(review(pod(owners=[REPLICA_SET], spec={"nodeName": "n1"})), VIEW).is_allowed


def test_a_missing_class_is_refused():
    view = PlacementView(REPLICA_SET, DEPLOYMENT, release(), namespace())

    assert (
        review_placement(review(pod(owners=[REPLICA_SET], spec=DC1)), view).message == 'AffinityClass "dc1" not found'
    )


def test_required_affinity_is_read():
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["dc1"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}

    assert review_placement(review(pod(owners=[REPLICA_SET], spec={"affinity": affinity})), VIEW).is_allowed


def test_the_event_is_on_the_application_and_is_the_same_for_every_retry():
    app = body(names.APPS_API_VERSION, "Postgres", "main-db")
    owned = release(owners=[app])
    view = PlacementView(app, REPLICA_SET, DEPLOYMENT, owned, affinity_class_body("dc1"), namespace())
    tries = [pod(f"main-db-5f-{suffix}", [REPLICA_SET]) for suffix in ("aaaaa", "bbbbb")]
    for each in tries:
        each["metadata"]["generateName"] = "main-db-5f-"

    first, second = (review_placement(review(each), view).events for each in tries)

    assert first == second
    assert str(first[0].object) == "Postgres tenant-acme/main-db"
    assert first[0].object.uid == app["metadata"]["uid"]
    assert "pod tenant-acme/main-db-5f-* belongs" in first[0].message


def test_where_the_release_does_not_name_its_application_the_event_is_on_the_release():
    event = review_placement(review(pod(owners=[REPLICA_SET])), VIEW).events[0]

    assert str(event.object) == "HelmRelease tenant-acme/postgres-main-db"


@pytest.mark.parametrize(("enforcement", "warnings", "events"), [("Warn", 1, 1), ("Audit", 0, 0)])
def test_a_class_that_does_not_refuse_admits_and_is_counted(enforcement, warnings, events):
    lax = affinity_class_body("dc1", enforcement=enforcement)
    view = PlacementView(REPLICA_SET, DEPLOYMENT, release(), lax, namespace())

    response = review_placement(review(pod(owners=[REPLICA_SET])), view)

    assert response.is_allowed
    assert (len(response.warnings), len(response.events)) == (warnings, events)
    assert response.facts["reason"] == "MissingNodeSelector"


def test_an_owner_is_looked_up_before_a_pod_counts_as_without_application():
    made = pod(owners=[CLUSTER])

    assert isinstance(review_placement(review(made), VIEW), Lookup)
    gone = review_placement(review(made, answers={owner_ref(CLUSTER): Missing()}), VIEW)
    assert gone.facts["reason"] == "UnownedAllowed"


def test_a_forbidden_owner_denies_a_restricted_pod_and_names_the_missing_right():
    unread = {owner_ref(CLUSTER): Unreadable("may not get clusters.postgresql.cnpg.io", Cause.FORBIDDEN)}

    refused = review_placement(review(pod(owners=[CLUSTER]), answers=unread), VIEW)
    assert not refused.is_allowed
    assert "may not get clusters.postgresql.cnpg.io" in refused.message
    (event,) = refused.events
    assert (str(event.object), event.reason) == ("Cluster tenant-acme/main", "OwnerForbidden")
    assert review_placement(review(pod(owners=[CLUSTER], spec=DC1), answers=unread), VIEW).is_allowed


@pytest.mark.parametrize(("allowed", "is_admitted"), [(["dc1"], True), (["dc1", "dc2"], False), (None, False)])
def test_where_applications_cannot_be_read_a_pod_fits_every_class_that_they_may_have(allowed, is_admitted):
    shown = release(of=None, affinity_class=None)
    classes = (affinity_class_body("dc1"), affinity_class_body("dc2"))
    troubles = {"Postgres.apps.cozystack.io": "may not list postgreses"}
    around = (definition_body("Postgres"), shown, tenant(allowedAffinityClasses=allowed), *classes, namespace())
    view = AffinityView(*around, troubles=troubles)
    asked = review(pod(owners=[shown], spec=DC1))

    lookup = review_placement(asked, view)
    unread = dict.fromkeys(lookup.refs, Unreadable("may not get postgreses", Cause.FORBIDDEN))
    response = review_placement(msgspec.structs.replace(asked, answers=unread), view)

    assert [(each.kind, each.name) for each in lookup.refs] == [("Postgres", "main-db")]
    assert response.is_allowed is is_admitted
    assert is_admitted or "may not get postgreses" in response.message


def test_pods_without_application_follow_the_rule_of_their_tenant():
    strict = tenant(allowedAffinityClasses=["dc1"], unownedPods="RequireAllowed")
    view = PlacementView(strict, affinity_class_body("dc1"), affinity_class_body("dc2"), namespace())

    refused = review_placement(review(pod()), view)
    assert (refused.is_allowed, refused.events) == (False, ())
    assert review_placement(review(pod(spec=DC1)), view).is_allowed
    assert review_placement(review(pod(namespace="elsewhere")), view).is_allowed


def test_the_namespace_may_weaken_where_the_class_permits_it():
    view = PlacementView(
        REPLICA_SET,
        DEPLOYMENT,
        release(),
        affinity_class_body("dc1", allowNamespaceOverride=True),
        namespace(labels={names.ENFORCEMENT: "Warn"}),
    )

    assert review_placement(review(pod(owners=[REPLICA_SET])), view).is_allowed


def test_a_malformed_pod_is_denied_as_such():
    broken = pod()
    broken["metadata"]["labels"] = ["a"]

    assert review_placement(review(broken), VIEW).code == 400
    assert review_lineage(review(broken), VIEW).code == 400
