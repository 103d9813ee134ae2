"""The path from a pod to the release of its application, and dead ends."""

import json

import msgspec
import pytest
from tests.builders.applications import NAMESPACE
from tests.builders.placements import FLUX, body, installed, pod, reference, release

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.class_record import stored_record
from nodeyard.capabilities.affinity.planning.lineage import (
    MAX_DEPTH,
    MAX_OBJECTS,
    Application,
    Owned,
    Pending,
    Unknown,
    Unowned,
    walk,
)
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.webhooks import Cause, Missing, Unreadable

POSTGRES = Application(names.APPS_GROUP, "Postgres", "main-db")
REDIS = Application(names.APPS_GROUP, "Redis", "cache")


def ref(obj):
    metadata = obj["metadata"]
    return ObjectRef(
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        uid=metadata["uid"],
    )


def found(start, *objects, records=(), uncached=(), **unreadable):
    """Walk over these objects only; `unreadable` names cannot be read.

    `records` are cached Applications, `uncached` are Applications that the release may belong to.
    """
    known = {(each["kind"], each["metadata"]["name"]): each for each in objects}

    def find(wanted):
        if wanted.name in unreadable:
            return unreadable[wanted.name]
        there = known.get((wanted.kind, wanted.name))
        return Missing() if there is None else msgspec.convert(there["metadata"], ObjectMeta)

    def recorded(namespace, name):
        for each in records:
            record = stored_record(each)
            if (each["metadata"]["namespace"], record.release) == (namespace, name):
                yield Application(names.APPS_GROUP, each["kind"], each["metadata"]["name"]), record
        yield from ((each, None) for each in uncached)

    return walk(ref(start), msgspec.convert(start["metadata"], ObjectMeta), find, recorded)


def way(lineage):
    return [f"{step.ref.kind} {step.ref.name}" for step in lineage.path]


def ends(lineage):
    return [(each.ref.name, each.reason) for each in lineage.dead_ends]


HELM = release()
DEPLOYMENT = installed("apps/v1", "Deployment", "main-db")
REPLICA_SET = body("apps/v1", "ReplicaSet", "main-db-5f", owners=[DEPLOYMENT])


def test_a_pod_belongs_to_the_application_whose_release_installed_its_owner():
    lineage = found(pod("p", [REPLICA_SET]), REPLICA_SET, DEPLOYMENT, HELM)

    assert lineage.application == POSTGRES
    assert way(lineage) == ["Pod p", "ReplicaSet main-db-5f", "Deployment main-db", "HelmRelease postgres-main-db"]
    assert [step.is_labelled for step in lineage.path] == [False, False, False, True]
    assert (lineage.others, lineage.dead_ends) == ((), ())


def test_a_custom_resource_may_be_an_intermediate_owner():
    cluster = installed("postgresql.cnpg.io/v1", "Cluster", "main-db")

    assert found(pod("p", [cluster]), cluster, HELM).application == POSTGRES


def test_a_release_of_an_application_ends_the_walk_though_it_has_owners():
    app = body(names.APPS_API_VERSION, "Postgres", "main-db")
    owned = release(owners=[app])

    assert way(found(pod("p", [DEPLOYMENT]), DEPLOYMENT, owned, app))[-1] == "HelmRelease postgres-main-db"


def test_a_release_that_another_release_installed_leads_on():
    child = release(
        "postgres-main-db-backup", of=None, affinity_class=None, labels={names.FLUX_NAME: "postgres-main-db"}
    )
    job = installed("batch/v1", "Job", "backup", by="postgres-main-db-backup")

    lineage = found(pod("p", [job]), job, child, HELM)

    assert way(lineage)[-2:] == ["HelmRelease postgres-main-db-backup", "HelmRelease postgres-main-db"]


@pytest.mark.parametrize(
    "wrong",
    [
        release(labels={names.APPLICATION_NAME: ""}, of=None),
        release(of=("Postgres", "other-db")),
        release(of=("", "main-db")),
    ],
    ids=["half labelled", "labels of another name", "no kind"],
)
def test_a_release_whose_labels_do_not_fit_belongs_to_no_application(wrong):
    assert found(pod("p", [DEPLOYMENT]), DEPLOYMENT, wrong) == Unowned()


def test_another_kind_with_the_labels_of_a_release_is_no_release():
    forged = body("example.dev/v1", names.RELEASE_KIND, "postgres-main-db", labels=HELM["metadata"]["labels"])

    assert isinstance(found(pod("p", [forged]), forged), Unowned)


def test_every_version_of_a_release_is_one():
    fallback_versions = {**HELM, "apiVersion": "helm.toolkit.fluxcd.io/v2beta2"}

    assert found(pod("p", [fallback_versions]), fallback_versions).application == POSTGRES


def test_a_pod_that_flux_itself_installed_is_found_by_its_label():
    assert found(pod("hook", labels={names.FLUX_NAME: "postgres-main-db"}), HELM).application == POSTGRES


def test_the_label_counts_where_owners_lead_nowhere():
    adopted = installed("apps/v1", "Deployment", "main-db", owners=[body("v1", "ConfigMap", "marker")])

    lineage = found(pod("p", [adopted]), adopted, HELM)

    assert lineage.application == POSTGRES
    assert ends(lineage) == [("marker", Reason.OWNER_MISSING)]


def test_the_label_does_not_count_where_owners_lead_to_an_application():
    redis = release("redis-cache", of=("Redis", "cache"))
    copied = pod("p", [DEPLOYMENT], labels={names.FLUX_NAME: "redis-cache"})

    lineage = found(copied, DEPLOYMENT, HELM, redis)

    assert (lineage.application, lineage.others) == (POSTGRES, ())


def test_a_pod_without_owners_belongs_to_no_application():
    assert found(pod("p")) == Unowned()


def test_a_missing_owner_is_named():
    lineage = found(pod("p", [REPLICA_SET]))

    assert isinstance(lineage, Unowned)
    assert ends(lineage) == [("main-db-5f", Reason.OWNER_MISSING)]


def test_a_recreated_owner_is_not_the_referenced_one():
    anew = {**REPLICA_SET, "metadata": {**REPLICA_SET["metadata"], "uid": "other"}}

    lineage = found(pod("p", [REPLICA_SET]), anew, DEPLOYMENT, HELM)

    assert isinstance(lineage, Unowned)
    assert ends(lineage) == [("main-db-5f", Reason.OWNER_REPLACED)]


def test_a_cycle_of_owners_ends():
    one, other = body("v1", "A", "one"), body("v1", "B", "other")
    one["metadata"]["ownerReferences"] = [reference(other)]
    other["metadata"]["ownerReferences"] = [reference(one)]

    lineage = found(pod("p", [one]), one, other)

    assert isinstance(lineage, Unowned)
    assert ends(lineage) == [("one", Reason.OWNER_CYCLE)]


def test_a_shared_owner_is_no_cycle():
    left = body("v1", "A", "left", owners=[DEPLOYMENT])
    right = body("v1", "B", "right", owners=[DEPLOYMENT])

    lineage = found(pod("p", [left, right]), left, right, DEPLOYMENT, HELM)

    assert (lineage.application, lineage.dead_ends, lineage.others) == (POSTGRES, (), ())


def test_an_owner_that_may_not_be_read_is_no_proof_of_anything():
    cluster = body("postgresql.cnpg.io/v1", "Cluster", "main")
    forbidden = Unreadable("may not get clusters.postgresql.cnpg.io", Cause.FORBIDDEN)

    lineage = found(pod("p", [cluster]), main=forbidden)

    assert isinstance(lineage, Unknown)
    assert (lineage.obstacle.reason, lineage.obstacle.detail) == (Reason.OWNER_FORBIDDEN, forbidden.reason)


def test_an_owner_that_does_not_answer_is_unknown_too():
    cluster = body("postgresql.cnpg.io/v1", "Cluster", "main")

    assert found(pod("p", [cluster]), main=Unreadable("timeout")).obstacle.reason is Reason.OWNER_UNKNOWN


def test_one_owner_with_an_application_makes_up_for_another_that_cannot_be_read():
    cluster = body("postgresql.cnpg.io/v1", "Cluster", "main")

    lineage = found(pod("p", [cluster, DEPLOYMENT]), DEPLOYMENT, HELM, main=Unreadable("timeout"))

    assert lineage.application == POSTGRES
    assert ends(lineage) == [("main", Reason.OWNER_UNKNOWN)]


def test_the_nearest_of_several_applications_wins_and_the_others_are_claims():
    redis = release("redis-cache", of=("Redis", "cache"))

    lineage = found(pod("p", [REPLICA_SET, redis]), REPLICA_SET, DEPLOYMENT, HELM, redis)

    assert lineage.application == REDIS
    assert [each.application for each in lineage.owning_releases] == [REDIS, POSTGRES]


def test_two_releases_of_one_application_are_two_claims():
    forged = release("lax-main-db", affinity_class=None)

    lineage = found(pod("p", [forged, HELM]), forged, HELM)

    assert [each.affinity_class for each in lineage.owning_releases] == ["", "dc1"]


def an_application(record="dc2", **changes):
    """Build an Application with a record of its class."""
    found = body(names.APPS_API_VERSION, "Postgres", "main-db")
    given = {"uid": found["metadata"]["uid"], "release": "postgres-main-db", "class": record, "source": "explicit"}
    found["metadata"]["annotations"] = {names.CLASS_RECORD: json.dumps({**given, **changes})}
    return found


def test_the_record_of_the_application_counts_over_what_its_release_shows():
    application = an_application(previous=["dc3"])
    shown = release(affinity_class=None, previous="", owners=[application])

    lineage = found(pod("p", [shown]), shown, application)

    assert [(each.affinity_class, each.previous) for each in lineage.owning_releases] == [("dc2", ("dc3",))]


@pytest.mark.parametrize(
    "application",
    [
        pytest.param(an_application(uid="another"), id="of another object"),
        pytest.param(an_application(release="postgres-other"), id="of another release"),
        pytest.param(body(names.APPS_API_VERSION, "Postgres", "main-db"), id="none"),
    ],
)
def test_a_record_that_is_not_of_this_release_backs_nothing(application):
    shown = release(owners=[application])

    assert [each.record for each in found(pod("p", [shown]), shown, application).owning_releases] == [None]


@pytest.mark.parametrize(
    "shown",
    [
        pytest.param(release(of=None, affinity_class=None), id="no labels"),
        pytest.param(release(of=("Redis", "main-db"), affinity_class="dc9"), id="labels of another"),
        pytest.param(release(of=None, owners=[body("v1", "ConfigMap", "marker")]), id="another owner"),
        pytest.param(release(of=None, labels={names.FLUX_NAME: "redis-cache"}), id="installed by another"),
    ],
)
def test_a_release_named_in_a_record_belongs_to_that_application(shown):
    redis = release("redis-cache", of=("Redis", "cache"))

    lineage = found(pod("p", [shown]), shown, redis, records=[an_application()])

    assert [(each.application, each.affinity_class) for each in lineage.owning_releases] == [(POSTGRES, "dc2")]
    assert lineage.dead_ends == ()


def test_a_missing_release_belongs_to_the_application_that_recorded_it():
    lineage = found(pod("p", [DEPLOYMENT]), DEPLOYMENT, records=[an_application()])

    assert (lineage.application, lineage.owning_releases[0].affinity_class) == (POSTGRES, "dc2")
    assert way(lineage)[-1] == "HelmRelease postgres-main-db"
    assert ends(lineage) == [("postgres-main-db", Reason.OWNER_MISSING)]
    assert isinstance(found(pod("p", [DEPLOYMENT]), DEPLOYMENT), Unowned)


def test_a_record_of_a_release_in_another_namespace_or_of_another_kind_counts_not():
    elsewhere, shown = an_application(), release(of=None)
    elsewhere["metadata"]["namespace"] = "tenant-other"
    namesake = body("example.dev/v1", names.RELEASE_KIND, "postgres-main-db")

    assert found(pod("p", [shown]), shown, records=[elsewhere]) == Unowned()
    assert found(pod("p", [namesake]), namesake, records=[an_application()]) == Unowned()


def test_an_application_whose_kind_is_not_cached_is_looked_up_for_its_record():
    shown, redis = release(of=None, labels={names.FLUX_NAME: "redis-cache"}), release("redis-cache", of=REDIS[1:])

    lineage = found(pod("p", [shown]), shown, redis, an_application(), uncached=[POSTGRES])
    others = [an_application(release="postgres-other"), body(names.APPS_API_VERSION, "Postgres", "main-db")]
    without = [found(pod("p", [shown]), shown, redis, each, uncached=[POSTGRES]) for each in others]

    assert [(each.application, each.affinity_class) for each in lineage.owning_releases] == [(POSTGRES, "dc2")]
    assert [each.application for each in without] == [REDIS, REDIS]


@pytest.mark.parametrize(
    ("answer", "ends_as"),
    [
        (Missing(), Unowned),
        (Unreadable("no such kind", Cause.NOT_SERVED), Unowned),
        (Unreadable("may not get postgreses", Cause.FORBIDDEN), Unknown),
        (Unreadable("no answer", Cause.TIMEOUT), Unknown),
        (None, Pending),
    ],
    ids=["missing", "not served", "forbidden", "no answer", "not looked up yet"],
)
def test_an_unreadable_record_is_not_a_missing_record(answer, ends_as):
    shown = release(of=None)

    assert isinstance(found(pod("p", [shown]), shown, uncached=[POSTGRES], **{"main-db": answer}), ends_as)


def test_a_missing_application_backs_nothing():
    shown = release(owners=[an_application()])
    lineage = found(pod("p", [shown]), shown)

    assert lineage.record is None
    assert [each.reason for each in lineage.dead_ends] == [Reason.OWNER_MISSING]


def test_a_record_in_an_unguarded_group_proves_nothing():
    forged = {**an_application(""), "apiVersion": "evil.dev/v1"}
    shown = release(owners=[forged])
    shown["metadata"]["labels"][names.APPLICATION_GROUP] = "evil.dev"

    assert found(pod("p", [shown]), shown, forged).record is None


def test_all_unknown_owners_are_looked_up_at_once():
    unseen = [body("v1", "A", "one"), body("v1", "B", "two")]
    known = {"postgres-main-db": HELM, "main-db": DEPLOYMENT}

    def find(wanted):
        there = known.get(wanted.name)
        return None if there is None else msgspec.convert(there["metadata"], ObjectMeta)

    start = pod("p", [*unseen, DEPLOYMENT])
    lineage = walk(ref(start), msgspec.convert(start["metadata"], ObjectMeta), find)

    assert lineage == Pending(tuple(ref(each) for each in unseen))


def test_owners_of_the_cluster_are_looked_for_in_no_namespace_and_lead_to_no_release():
    wide = body("example.dev/v1", "Fleet", "all", namespace="", labels={names.FLUX_NAME: "postgres-main-db"})

    assert found(pod("p", [wide]), wide, HELM) == Unowned()


def test_an_endless_chain_of_owners_is_not_followed_to_its_end():
    chain = [body("v1", "Link", "link-0")]
    for number in range(1, MAX_DEPTH + 2):
        chain.append(body("v1", "Link", f"link-{number}", owners=[chain[-1]]))

    lineage = found(pod("p", [chain[-1]]), *chain)

    assert isinstance(lineage, Unknown)
    assert "16 steps" in lineage.obstacle.detail


def test_the_number_of_followed_owners_is_bounded():
    crowd = [body("v1", "One", f"one-{number}") for number in range(MAX_OBJECTS)]

    lineage = found(pod("p", crowd), *crowd)

    assert isinstance(lineage, Unknown)
    assert "128 owners" in lineage.obstacle.detail


def test_the_application_of_the_label_is_returned_with_its_uid():
    lineage = found(pod("hook", labels={names.FLUX_NAME: "postgres-main-db"}), HELM)

    assert isinstance(lineage, Owned)
    assert lineage.release.ref == ObjectRef(
        api_version=FLUX,
        kind=names.RELEASE_KIND,
        name="postgres-main-db",
        namespace=NAMESPACE,
        uid="uid-helmrelease-postgres-main-db",
    )
