"""Snapshots collected from the cache, key by key."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest
from tests.builders.affinity_env import application_body, class_body, definition_body, tenant_body
from tests.builders.affinity_views import AffinityView, registration
from tests.builders.applications import api_service

from nodeyard.admission.configurations import VALIDATING
from nodeyard.capabilities.affinity import controller, names, watched
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.affinity.planning import classes, containment
from nodeyard.capabilities.affinity.planning.containment import contains_pod
from nodeyard.kube.names import ZONE

collect = AFFINITY.collect
NOW = datetime(2030, 1, 1, tzinfo=UTC)
GOING = "2029-12-31T00:00:00Z"
FORBIDDEN = "cannot watch postgreses.apps.cozystack.io: forbidden"
POSTGRES = definition_body("Postgres")
DB = application_body("Postgres", "tenant-acme", "db", affinityClass="dc1")
CLASSES = (class_body("dc1", nodeSelector={ZONE: "dc1"}), class_body("dc2", nodeSelector={ZONE: "dc2"}))
ELSEWHERE = api_service()


def going(body):
    return {**body, "metadata": {**body["metadata"], "deletionTimestamp": GOING}}


def release(name, namespace="tenant-acme", **labels):
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": names.FLUX_API_VERSION, "kind": names.RELEASE_KIND, "metadata": metadata, "spec": {}}


OF_CACHE = {
    names.APPLICATION_GROUP: names.APPS_GROUP,
    names.APPLICATION_KIND: "Redis",
    names.APPLICATION_NAME: "cache",
}


def test_an_application_is_collected_only_with_the_objects_that_it_names():
    view = AffinityView(POSTGRES, DB, *CLASSES, tenant_body("acme", defaultAffinityClass="dc1"), release("postgres-db"))

    snapshot = collect(view, "application/Postgres/tenant-acme/db", NOW)

    assert snapshot.definition.name == "postgres"
    assert set(snapshot.classes) == {"dc1"}
    assert snapshot.policy.default == "dc1"
    assert snapshot.release["metadata"]["name"] == "postgres-db"
    assert snapshot.is_release_served


def test_without_flux_that_is_known():
    assert not collect(AffinityView(POSTGRES, DB), "application/Postgres/tenant-acme/db", NOW).is_release_served


@pytest.mark.parametrize(
    "key",
    ["application/Postgres/tenant-acme/gone", "application/Other/x/y", "class/gone", "definition/gone", "pod/x/y", "?"],
)
def test_a_missing_object_has_no_snapshot(key):
    assert collect(AffinityView(POSTGRES), key, NOW) is None


def test_applications_served_by_an_apiservice_are_not_planned():
    view = AffinityView(POSTGRES, ELSEWHERE)

    assert collect(view, "application/Postgres/tenant-acme/db", NOW) is None
    assert collect(view, "tenants", NOW).is_served_elsewhere
    assert collect(view, "definition/postgres", NOW).is_served_elsewhere
    assert [each.resource.kind for each in AFFINITY.dynamic.watches(view)] == []


def test_remaining_objects_of_a_deleted_tenant_are_counted_once():
    view = AffinityView(
        going(tenant_body("acme")), tenant_body("other"), POSTGRES, DB, release("redis-cache", **OF_CACHE)
    )

    snapshot = collect(view, "tenants", NOW)

    assert snapshot.applications == {"tenant-acme": 2}
    assert snapshot.watch_error == ""


def test_kinds_that_cannot_be_watched_are_not_counted_as_empty():
    troubles = {"Postgres.apps.cozystack.io": FORBIDDEN}

    assert collect(AffinityView(going(tenant_body("acme")), POSTGRES, troubles=troubles), "tenants", NOW).watch_error
    assert collect(AffinityView(POSTGRES, troubles=troubles), "definition/postgres", NOW).watch_error == FORBIDDEN


def test_a_foreign_crd_is_detected_by_its_served_kind():
    ours = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "postgreses.apps.cozystack.io", "labels": {names.DECLARED_BY: "postgres"}},
    }
    served = [(names.APPS_GROUP, "Postgres")]

    assert collect(AffinityView(POSTGRES), "definition/postgres", NOW).crd is None
    assert collect(AffinityView(POSTGRES, ours, served=served), "definition/postgres", NOW).crd == ours
    theirs = collect(AffinityView(POSTGRES, served=served), "definition/postgres", NOW).crd
    assert theirs["metadata"] == {"name": "postgreses.apps.cozystack.io"}


def test_the_older_of_two_definitions_of_a_kind_is_effective():
    def made(name, created):
        body = definition_body("Postgres", name=name)
        return {**body, "metadata": {"name": name, "creationTimestamp": created}}

    view = AffinityView(made("young", "2029-01-02T00:00:00Z"), made("old", "2029-01-01T00:00:00Z"), DB)

    assert collect(view, "definition/young", NOW).rivals == ["old"]
    assert collect(view, "definition/old", NOW).rivals == []
    assert collect(view, "application/Postgres/tenant-acme/db", NOW).definition.name == "old"


def test_a_class_comes_with_its_nodes_users_and_violators():
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {ZONE: "dc1"}}}
    stamp = {names.AFFINITY_CLASS: "dc1"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "tenant-acme", "labels": stamp}}
    view = AffinityView(POSTGRES, DB, *CLASSES, node, pod)

    snapshot = collect(view, "class/dc1", NOW)

    assert snapshot.zones == {"dc1": 1}
    assert [(each.kind, each.name) for each in snapshot.users] == [("Postgres", "db")]
    assert snapshot.violators == ["tenant-acme/p"]


@pytest.fixture
def checks(monkeypatch):
    """Count containment checks. Classes are compiled anew, because they cache results."""
    made = []
    monkeypatch.setattr(containment, "_cache", {})
    monkeypatch.setattr(classes, "contains_pod", lambda *given: made.append(given) or contains_pod(*given))
    return made


def placed(number, zone, **more):
    metadata = {"name": f"p{number}", "namespace": "tenant-acme", "labels": {names.AFFINITY_CLASS: "dc1"}}
    spec = {"nodeSelector": {ZONE: zone, **more}} if zone else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("pods", [10, 1000])
def test_a_class_checks_one_pod_per_shape(checks, pods):
    view = AffinityView(*CLASSES, *(placed(number, "dc1") for number in range(pods)), placed(pods, ""))
    pod = view.get("Pod", f"p{pods}", "tenant-acme")
    moved = msgspec.structs.replace(pod, status=watched.PlacedStatus(phase="Running"))

    snapshot = collect(view, "class/dc1", NOW)

    assert snapshot.violators == [f"tenant-acme/p{pods}"]
    assert len(checks) == 2
    # A change of a running pod outside its class maps to no key.
    assert list(controller.pod_keys(view, pod, moved)) == []
    assert list(controller.pod_keys(view, moved, None)) == ["class/dc1"]
    assert len(checks) == 2


def test_pods_that_are_all_different_are_checked_once_and_not_with_every_event(checks):
    """Build pods of a StatefulSet that is spread by node names."""
    view = AffinityView(*CLASSES, *(placed(number, "dc2", host=f"n{number}") for number in range(300)))
    pods = view.kept("Pod")

    assert collect(view, "class/dc1", NOW).violator_count == 300
    pods["tenant-acme", "p300"] = new = msgspec.convert(placed(300, "dc2", host="n300"), watched.PlacedPod)
    assert list(controller.pod_keys(view, None, new)) == ["class/dc1"]
    snapshot = collect(view, "class/dc1", NOW)

    assert len(checks) == 301
    assert snapshot.violator_count == 301
    assert len(snapshot.violators) == classes.NAMED_PODS


def test_a_class_that_is_made_anew_checks_its_pods_anew():
    view = AffinityView(*CLASSES, placed(1, "dc2"))
    assert collect(view, "class/dc1", NOW).violator_count == 1
    other = class_body("dc1", nodeSelector={ZONE: "dc2"})
    assert collect(AffinityView(other, placed(1, "dc2")), "class/dc1", NOW).violator_count == 0


def test_above_the_limit_only_the_number_of_violators_is_reported(checks):
    view = AffinityView(*CLASSES, *(placed(number, "dc2") for number in range(101)))

    snapshot = collect(view, "class/dc1", NOW)

    assert (snapshot.violators, snapshot.violator_count) == ([], 101)
    assert len(checks) == 1


def test_pods_of_a_daemon_set_are_checked_by_their_nodes_where_its_selector_is_not_enough():
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a", "b"]}]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    either = class_body("dc1", nodeAffinity=affinity)
    found = []
    for zone in ("a", "b", "c"):
        field = {"key": "metadata.name", "operator": "In", "values": [f"n-{zone}"]}
        named = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
        pod = placed(zone, "")
        pod["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
        ]
        pod["spec"] = {"affinity": {"nodeAffinity": named}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n-{zone}", "labels": {ZONE: zone}}}
        found += [pod, node]

    assert collect(AffinityView(either, *found), "class/dc1", NOW).violators == ["tenant-acme/pc"]


def test_kinds_that_were_met_are_watched_by_their_metadata():
    view = AffinityView(POSTGRES, recent_kinds=[("postgresql.cnpg.io/v1", "Cluster")])

    found = {each.resource.kind: each for each in AFFINITY.dynamic.watches(view)}

    assert set(found) == {"Postgres", "Cluster"}
    assert (found["Cluster"].metadata_only, found["Postgres"].metadata_only) == (True, False)
    assert all(each.optional for each in found.values())


def test_a_release_under_an_earlier_prefix_is_found():
    labels = {**OF_CACHE, names.APPLICATION_KIND: "Postgres", names.APPLICATION_NAME: "db"}
    old, right = release("pg-db", **labels), release("postgres-db", **labels)
    key = "application/Postgres/tenant-acme/db"

    assert collect(AffinityView(POSTGRES, DB, old), key, NOW).other_release == "pg-db"
    assert collect(AffinityView(POSTGRES, DB, old, right), key, NOW).other_release == ""
    assert collect(AffinityView(POSTGRES, DB, release("redis-cache", **OF_CACHE)), key, NOW).other_release == ""


def test_a_crd_that_a_definition_had_under_another_plural_is_known():
    def made(name, **more):
        metadata = {"name": f"{name}.apps.cozystack.io", "labels": {names.DECLARED_BY: "postgres"}, **more}
        kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        return {**kind, "metadata": metadata, "spec": {}}

    view = AffinityView(POSTGRES, made("postgreses"), made("pgs"), made("gone", deletionTimestamp=GOING))

    assert collect(view, "definition/postgres", NOW).former == ["pgs.apps.cozystack.io"]


def test_an_application_has_the_registration_of_the_pod_webhook_and_the_labels_of_its_namespace():
    asking = {"apiVersion": VALIDATING.api_version, "kind": VALIDATING.kind, **registration()}
    labels = {names.ENFORCEMENT: "Warn"}
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant-acme", "labels": labels}}
    key = "application/Postgres/tenant-acme/db"

    assert not collect(AffinityView(POSTGRES, DB), key, NOW).is_webhook_registered
    asked = collect(AffinityView(POSTGRES, DB, asking, home), key, NOW)
    assert (asked.is_webhook_registered, asked.namespace_labels) == (True, labels)


def test_pods_are_watched_also_for_tenants_alone_since_they_go_with_them():
    (pods,) = [watch for watch in AFFINITY.watches if watch.resource is watched.PLACED_PODS]

    assert not pods.needed(AffinityView())
    assert pods.needed(AffinityView(tenant_body("acme")))


def test_a_tenant_stays_while_the_pods_in_it_are_not_known():
    acme = going(tenant_body("acme"))

    known = collect(AffinityView(acme), names.TENANTS_KEY, NOW)
    unknown = collect(AffinityView(acme, troubles={"Pod.core": "pods is forbidden"}), names.TENANTS_KEY, NOW)

    assert known.watch_error == ""
    assert unknown.watch_error == "pods is forbidden"


def test_a_record_says_under_which_name_an_application_is_released():
    """Whoever may write HelmReleases could otherwise keep a deleted one from being made again."""
    labels = {**OF_CACHE, names.APPLICATION_KIND: "Postgres", names.APPLICATION_NAME: "db"}
    key = "application/Postgres/tenant-acme/db"

    def other(recorded, *releases):
        record = {"uid": "uid-db", "release": recorded, "class": "", "source": "none"}
        metadata = {**DB["metadata"], "uid": "uid-db", "annotations": {names.CLASS_RECORD: json.dumps(record)}}
        view = AffinityView(POSTGRES, {**DB, "metadata": metadata}, *(release(each, **labels) for each in releases))
        return collect(view, key, NOW).other_release

    assert other("postgres-db", "evil-db") == ""
    assert other("pg-db", "evil-db", "pg-db") == "pg-db"
    assert other("pg-db", "evil-db") == ""
