"""What a plan sees of the cache, key by key."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.builders.affinity_views import AffinityView
from tests.builders.applications import api_service
from tests.builders.estates import application_body, class_body, definition_body, tenant_body

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collecting import collect
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.kube.names import ZONE

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


def test_an_application_comes_with_what_it_names_and_nothing_else():
    view = AffinityView(POSTGRES, DB, *CLASSES, tenant_body("acme", defaultAffinityClass="dc1"), release("postgres-db"))

    snapshot = collect(view, "application/Postgres/tenant-acme/db", NOW)

    assert snapshot.definition.name == "postgres"
    assert set(snapshot.classes) == {"dc1"}
    assert snapshot.standing.default == "dc1"
    assert snapshot.release["metadata"]["name"] == "postgres-db"
    assert snapshot.is_release_served


def test_without_flux_that_is_known():
    assert not collect(AffinityView(POSTGRES, DB), "application/Postgres/tenant-acme/db", NOW).is_release_served


@pytest.mark.parametrize(
    "key",
    ["application/Postgres/tenant-acme/gone", "application/Other/x/y", "class/gone", "definition/gone", "pod/x/y", "?"],
)
def test_of_what_is_not_there_there_is_no_snapshot(key):
    assert collect(AffinityView(POSTGRES), key, NOW) is None


def test_applications_that_somebody_else_serves_are_not_ours_to_plan():
    view = AffinityView(POSTGRES, ELSEWHERE)

    assert collect(view, "application/Postgres/tenant-acme/db", NOW) is None
    assert collect(view, "tenants", NOW).is_served_elsewhere
    assert collect(view, "definition/postgres", NOW).is_served_elsewhere
    assert [each.resource.kind for each in AFFINITY.declared(view)] == []


def test_a_tenant_that_is_to_go_has_what_is_left_in_it_counted_once():
    view = AffinityView(
        going(tenant_body("acme")), tenant_body("other"), POSTGRES, DB, release("redis-cache", **OF_CACHE)
    )

    snapshot = collect(view, "tenants", NOW)

    assert snapshot.applications == {"tenant-acme": 2}
    assert snapshot.trouble == ""


def test_what_cannot_be_watched_is_not_counted_as_none():
    troubles = {"Postgres.apps.cozystack.io": FORBIDDEN}

    assert collect(AffinityView(going(tenant_body("acme")), POSTGRES, troubles=troubles), "tenants", NOW).trouble
    assert collect(AffinityView(POSTGRES, troubles=troubles), "definition/postgres", NOW).trouble == FORBIDDEN


def test_the_crd_of_somebody_else_is_known_by_its_kind_being_served():
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


def test_of_two_definitions_of_a_kind_the_older_counts():
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


def test_kinds_that_were_met_are_watched_by_their_metadata():
    view = AffinityView(POSTGRES, sightings=[("postgresql.cnpg.io/v1", "Cluster")])

    found = {each.resource.kind: each for each in AFFINITY.declared(view)}

    assert set(found) == {"Postgres", "Cluster"}
    assert (found["Cluster"].metadata_only, found["Postgres"].metadata_only) == (True, False)
    assert all(each.optional for each in found.values())


def test_a_release_under_an_earlier_prefix_is_found_where_there_is_none_of_the_right_name():
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


def test_an_application_knows_whether_anybody_is_asked_about_its_pods_and_what_its_namespace_says():
    registration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "nodeyard-affinity"},
        "webhooks": [{"name": "placement-tenants.affinity.nodeyard.dev"}],
    }
    labels = {names.ENFORCEMENT: "Warn"}
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant-acme", "labels": labels}}
    key = "application/Postgres/tenant-acme/db"

    assert not collect(AffinityView(POSTGRES, DB), key, NOW).is_asked
    asked = collect(AffinityView(POSTGRES, DB, registration, home), key, NOW)
    assert (asked.is_asked, asked.namespace_labels) == (True, labels)
