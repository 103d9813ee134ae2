"""Keys of an event: exactly those whose plan it can change."""

from __future__ import annotations

import copy

import msgspec
import pytest
from tests.builders.affinity_env import application_body, class_body, definition_body, tenant_body
from tests.builders.affinity_views import AffinityView, registration

from nodeyard.capabilities.affinity import controller, names, watched
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.capabilities.affinity.watched import PlacedPod
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import Namespace, PartialObject
from nodeyard.runtime.capability import Watch

DC1 = class_body("dc1", nodeSelector={ZONE: "dc1"})
DC2 = class_body("dc2", nodeSelector={ZONE: "dc2"})
ACME = tenant_body("acme", defaultAffinityClass="dc1")
WEB = tenant_body("web", "tenant-acme")
OTHER = tenant_body("other")
POSTGRES = definition_body("Postgres")
DB = application_body("Postgres", "tenant-acme", "db", affinityClass="dc1")
INNER = application_body("Postgres", "tenant-acme-web", "inner")
ELSEWHERE = application_body("Postgres", "tenant-other", "far", affinityClass="dc2")


def release(name="postgres-db", namespace="tenant-acme", application="db", **labels):
    marked = {
        names.APPLICATION_GROUP: names.APPS_GROUP,
        names.APPLICATION_KIND: "Postgres",
        names.APPLICATION_NAME: application,
    }
    metadata = {"name": name, "namespace": namespace, "labels": {**(marked if application else {}), **labels}}
    return {"apiVersion": names.FLUX_API_VERSION, "kind": names.RELEASE_KIND, "metadata": metadata, "spec": {}}


VIEW = AffinityView(DC1, DC2, ACME, WEB, OTHER, POSTGRES, DB, INNER, ELSEWHERE, release())
IN_ACME = {"application/Postgres/tenant-acme/db", "application/Postgres/tenant-acme-web/inner"}


def changed(body, **metadata):
    """Return the object with other metadata."""
    other = copy.deepcopy(body)
    other["metadata"].update(metadata)
    return other


def due(found):
    return set(found)


def as_class(body):
    return msgspec.convert(body, AffinityClass)


def as_tenant(body):
    return msgspec.convert(body, Tenant)


def test_a_new_class_enqueues_itself_the_tenants_and_all_keys_that_inherit_it():
    assert due(controller.class_keys(VIEW, None, as_class(DC1))) >= {"class/dc1", "tenants", *IN_ACME}
    assert "application/Postgres/tenant-other/far" not in due(controller.class_keys(VIEW, None, as_class(DC1)))


def test_the_status_of_a_class_enqueues_nothing():
    told = {**DC1, "status": {"nodes": 5}}

    assert due(controller.class_keys(VIEW, as_class(DC1), as_class(told))) == set()


def test_a_tenants_change_concerns_the_applications_in_it_and_below():
    before, after = as_tenant(ACME), as_tenant(tenant_body("acme", defaultAffinityClass="dc2"))

    found = due(controller.tenant_keys(VIEW, before, after))

    assert found == {"tenants", "class/dc1", "class/dc2", *IN_ACME}


def test_a_tenants_pause_concerns_the_tree_alone():
    paused = as_tenant(changed(ACME, annotations={"nodeyard.dev/paused": "true"}))

    assert due(controller.tenant_keys(VIEW, as_tenant(ACME), paused)) == {"tenants", "class/dc1"}


def test_a_definitions_change_concerns_its_applications_and_rivals():
    rival = definition_body("Postgres", name="second")
    view = AffinityView(POSTGRES, rival, DB)
    definition = msgspec.convert(POSTGRES, ApplicationDefinition)

    assert due(controller.definition_keys(view, None, definition)) == {
        "definition/postgres", "definition/second", "application/Postgres/tenant-acme/db"
    }  # fmt: skip


def test_an_application_enqueues_its_definition_and_class_when_added_but_not_for_its_status():
    assert due(controller.application_keys("Postgres", VIEW, DB, {**DB, "status": {"release": "x"}})) == set()
    assert due(controller.application_keys("Postgres", VIEW, None, DB)) == {
        "application/Postgres/tenant-acme/db", "class/dc1", "definition/postgres"
    }  # fmt: skip


def test_an_applications_going_concerns_every_definition_of_its_kind():
    view = AffinityView(POSTGRES, definition_body("Postgres", name="second"), definition_body("Redis"), DB)

    found = due(controller.application_keys("Postgres", view, DB, None))

    assert {each for each in found if each.startswith("definition/")} == {"definition/postgres", "definition/second"}


def test_objects_removed_from_a_deleted_tenant_enqueue_the_tenants():
    going = changed(ACME, deletionTimestamp="2030-01-01T00:00:00Z")
    view = AffinityView(going, POSTGRES, DB)

    assert "tenants" in due(controller.application_keys("Postgres", view, DB, None))
    assert "tenants" in due(controller.release_keys(view, release(), None))
    assert "tenants" not in due(controller.application_keys("Postgres", VIEW, DB, None))


def test_removed_workloads_volumes_and_bare_pods_enqueue_a_tenant_that_waits_for_them():
    leaving = AffinityView(changed(ACME, deletionTimestamp="2030-01-01T00:00:00Z"))

    for told, obj in ((controller.unmanaged_keys, in_acme(PartialObject)), (controller.pod_keys, in_acme(PlacedPod))):
        assert due(told(leaving, obj, None)) == {"tenants"}
        assert due(told(leaving, None, obj)) == {"tenants"}
        assert due(told(leaving, obj, obj)) == set()
        assert due(told(VIEW, obj, None)) == set()


def test_controlled_and_finished_pods_do_not_block_a_tenant():
    leaving = AffinityView(changed(ACME, deletionTimestamp="2030-01-01T00:00:00Z"))
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}

    for told, type in ((controller.unmanaged_keys, PartialObject), (controller.pod_keys, PlacedPod)):
        assert due(told(leaving, in_acme(type, ownerReferences=[owner]), None)) == set()
        assert due(told(leaving, in_acme(type, ownerReferences=[owner]), in_acme(type))) == {"tenants"}
    finished = msgspec.structs.replace(in_acme(PlacedPod), status=watched.PlacedStatus(phase="Succeeded"))
    assert due(controller.pod_keys(leaving, in_acme(PlacedPod), finished)) == {"tenants"}
    assert due(controller.pod_keys(leaving, finished, None)) == set()


def test_an_object_of_an_uncounted_controller_enqueues_the_waiting_tenant():
    """Volumes and pods of a database operator, whose own kind is not counted."""
    leaving = AffinityView(changed(ACME, deletionTimestamp="2030-01-01T00:00:00Z"))

    for api_version, kind in (("postgresql.cnpg.io/v1", "Cluster"), ("example.dev/v1", "Deployment")):
        owner = {"apiVersion": api_version, "kind": kind, "name": "main", "uid": "1", "controller": True}
        for told, type in ((controller.unmanaged_keys, PartialObject), (controller.pod_keys, PlacedPod)):
            assert due(told(leaving, in_acme(type, ownerReferences=[owner]), None)) == {"tenants"}


def in_acme(type, **metadata):
    return msgspec.convert({"metadata": {"name": "left", "namespace": "tenant-acme", **metadata}}, type)


def test_a_releases_status_concerns_its_application():
    ready = {**release(), "status": {"observedGeneration": 1}}

    assert due(controller.release_keys(VIEW, release(), ready)) == {"application/Postgres/tenant-acme/db"}


def test_a_releases_class_concerns_the_classes_before_and_after():
    before, after = release(**{names.AFFINITY_CLASS: "dc1"}), release(**{names.AFFINITY_CLASS: "dc2"})

    assert due(controller.release_keys(VIEW, before, after)) >= {"class/dc1", "class/dc2"}


def test_a_release_without_owner_enqueues_the_application_of_its_name():
    foreign = release("postgres-fresh", application="")

    assert due(controller.release_keys(VIEW, None, foreign)) == {"application/Postgres/tenant-acme/fresh"}


def test_a_release_that_loses_its_owner_enqueues_the_application_of_its_name():
    owned = changed(release(application=""), ownerReferences=[{"uid": "u", "controller": True}])

    assert due(controller.release_keys(VIEW, owned, release(application=""))) == {"application/Postgres/tenant-acme/db"}


@pytest.mark.parametrize(("name", "found"), [("tenant-acme", {"tenants"}), ("default", set())])
def test_only_namespaces_of_tenants_concern_the_tree(name, found):
    namespace = msgspec.convert({"metadata": {"name": name}}, Namespace)

    assert due(controller.namespace_keys(VIEW, None, namespace)) == found
    assert due(controller.namespace_keys(VIEW, namespace, namespace)) == set()


@pytest.mark.parametrize("label", [names.ENFORCEMENT, names.SYSTEM_NAMESPACE])
def test_the_enforcement_label_of_a_namespace_concerns_the_applications_in_it(label):
    before, after = (
        msgspec.convert({"metadata": {"name": "tenant-acme", "labels": labels}}, Namespace)
        for labels in ({}, {label: "x"})
    )

    assert due(controller.namespace_keys(VIEW, before, after)) == {"tenants", "application/Postgres/tenant-acme/db"}


def test_the_registration_of_the_pod_webhook_concerns_all_applications():
    every = {*IN_ACME, "application/Postgres/tenant-other/far"}
    assert due(controller.registration_keys(VIEW, None, registration(b"a"))) == every
    assert due(controller.registration_keys(VIEW, registration(b"a"), registration(b"b"))) == set()
    assert due(controller.registration_keys(VIEW, registration(b"a"), {"webhooks": []})) == every


@pytest.mark.parametrize(("namespace", "found"), [("cozy-system", {"tenants"}), ("default", set())])
def test_only_values_of_tenants_and_of_the_platform_concern_the_tree(namespace, found):
    assert (
        due(controller.values_keys(None, {"metadata": {"name": "cozystack-values", "namespace": namespace}})) == found
    )


def test_a_crd_concerns_its_definition():
    crd = {"metadata": {"name": "postgreses.apps.cozystack.io", "labels": {names.DECLARED_BY: "postgres"}}}

    assert due(controller.crd_keys(crd, None)) == {"definition/postgres"}


def test_a_node_enqueues_only_the_classes_that_it_joins_or_leaves():
    def node(**labels):
        return msgspec.convert({"metadata": {"name": "n1", "labels": labels}}, PartialObject)

    assert due(controller.node_keys(VIEW, None, node(**{ZONE: "dc1"}))) == {"class/dc1"}
    assert due(controller.node_keys(VIEW, node(**{ZONE: "dc1"}), node(**{ZONE: "dc2"}))) == {"class/dc1", "class/dc2"}
    assert due(controller.node_keys(VIEW, node(**{ZONE: "dc1"}), node(**{ZONE: "dc1", "other": "label"}))) == set()


def test_a_pod_enqueues_its_class_only_if_it_may_violate_it():
    assert due(controller.pod_keys(VIEW, None, labelled(**{ZONE: "dc1"}))) == set()
    assert due(controller.pod_keys(VIEW, None, labelled())) == {"class/dc1"}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_finished_is_outside_of_nothing(phase):
    assert due(controller.pod_keys(VIEW, None, labelled(phase))) == set()
    assert due(controller.pod_keys(VIEW, labelled("Running"), labelled(phase))) == {"class/dc1"}


def labelled(phase="Running", **selector):
    body = {
        "metadata": {"name": "p", "namespace": "tenant-acme", "labels": {names.AFFINITY_CLASS: "dc1"}},
        "spec": {"nodeSelector": selector},
        "status": {"phase": phase},
    }
    return msgspec.convert(body, PlacedPod)


def test_a_change_of_the_serving_apiservice_enqueues_every_key():
    theirs = {"metadata": {"name": watched.APPS_API_SERVICE}, "spec": {"service": {"name": "cozystack-api"}}}

    assert due(controller.api_service_keys(VIEW, None, theirs)) == due(controller.all_keys(VIEW))
    assert due(controller.api_service_keys(VIEW, None, {"metadata": {}, "spec": {}})) == set()


def test_every_watched_kind_enqueues_keys():
    """A change of an object that a plan has read causes a new plan."""
    default = Watch.__dataclass_fields__["keys"].default

    silent = [str(each.resource) for each in AFFINITY.watches if each.map_with_view is None and each.keys is default]

    assert silent == []


def test_all_keys_are_one_for_the_tenants_and_one_for_each_of_the_others():
    assert due(controller.all_keys(VIEW)) == {
        "tenants", "class/dc1", "class/dc2", "definition/postgres", *IN_ACME, "application/Postgres/tenant-other/far"
    }  # fmt: skip
