"""Affinity on the dashboard."""

from datetime import timedelta

from tests.builders.affinity_views import AffinityView
from tests.builders.applications import ZONE, definition_body
from tests.builders.placements import affinity_class_body, body, node, pod
from tests.builders.spares import NOW
from tests.builders.tenants import tenant_body

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.surface import SURFACE
from nodeyard.runtime.surface import Severity

SINCE = "2029-12-31T23:00:00Z"
AN_HOUR_AGO = NOW - timedelta(hours=1)


def condition(type, reason, message="it is so", status="False"):
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


def with_status(obj, **status):
    return {**obj, "status": status}


# tiles


def test_a_node_shows_every_class_that_it_is_in():
    view = AffinityView(
        affinity_class_body("dc1"),
        affinity_class_body("dc2"),
        affinity_class_body("any", {}),
        node("n1", "dc1"),
        node("n2", "dc3"),
    )
    assert SURFACE.tile(view, "n1").placement_class == "any, dc1"
    assert SURFACE.tile(view, "n2").placement_class == "any"
    assert SURFACE.tile(view, "gone") is None


def test_a_node_in_no_class_is_left_to_others():
    assert SURFACE.tile(AffinityView(affinity_class_body("dc1"), node("n1", "dc2")), "n1") is None


def test_only_a_changed_selector_of_a_class_redraws_all_nodes():
    view = AffinityView(affinity_class_body("dc1"), node("n1", "dc1"), node("n2"))
    (affinity_class,) = view.all(names.CLASS_KIND)
    changes = SURFACE.tile_nodes[names.CLASS_KIND]
    assert list(changes(view, affinity_class, affinity_class)) == []
    assert changes(view, None, affinity_class) == ["n1", "n2"]


# attention


def test_a_used_class_without_nodes_is_a_critical_shortage():
    without = [condition("NodesMatch", "NoNodeMatches", "No node matches")]
    view = AffinityView(
        with_status(affinity_class_body("dc1"), users=2, conditions=without),
        with_status(affinity_class_body("idle"), users=0, conditions=without),
    )
    (item,) = SURFACE.attention(view, NOW)
    assert (item.kind, item.severity, item.object.name) == ("Shortage", Severity.CRITICAL, "dc1")
    assert (item.reason, item.message, item.since) == ("NoNodeMatches", "No node matches", AN_HOUR_AGO)
    assert item.link == {"view": "yard", "group": "class", "class": "dc1"}


def test_a_tenant_with_refused_classes_needs_attention():
    view = AffinityView(with_status(tenant_body("acme"), conditions=[condition("ClassesValid", "NotAllowedByParent")]))
    (item,) = SURFACE.attention(view, NOW)
    assert (item.kind, item.object.name, item.reason) == ("Refused", "acme", "NotAllowedByParent")


# places


def placed(name, zone, namespace="tenant-acme", of="dc1"):
    labels = {names.AFFINITY_CLASS: of}
    return pod(name, labels=labels, namespace=namespace, spec={"nodeSelector": {ZONE: zone}})


def test_a_tenant_shows_its_classes_with_nodes_pods_and_violators():
    view = AffinityView(
        with_status(affinity_class_body("dc1"), nodes=7),
        with_status(affinity_class_body("dc2"), nodes=3),
        affinity_class_body("dc3"),
        with_status(tenant_body("acme"), defaultAffinityClass="dc1", allowedAffinityClasses=["dc1", "dc2"]),
        tenant_body("other"),
        placed("a", "dc1"),
        placed("b", "dc1"),
        placed("stray", "dc2"),
        placed("c", "dc1", "tenant-other"),
    )
    acme, other = SURFACE.places(view, NOW).tenants
    assert [each.name for each in acme.classes] == ["dc1", "dc2"]
    dc1, dc2 = acme.classes
    assert (acme.name, dc1.nodes, dc1.pods, dc1.is_default) == ("tenant-acme", 7, 3, True)
    assert [(each.kind, each.namespace, each.name) for each in dc1.violators] == [("Pod", "tenant-acme", "stray")]
    assert (dc2.nodes, dc2.pods, dc2.is_default, dc2.violators) == (3, 0, False, ())
    assert [each.name for each in other.classes] == ["dc1", "dc2", "dc3"]
    assert (other.classes[0].pods, other.classes[0].violators) == (1, ())


def test_refused_applications_stand_with_their_tenant():
    refused = body(
        names.APPS_API_VERSION,
        "Postgres",
        "main-db",
        namespace="tenant-acme",
        status={"conditions": [condition("AffinityClassResolved", "AffinityClassNotAllowed", "dc9 is not allowed")]},
    )
    fine = body(
        names.APPS_API_VERSION,
        "Postgres",
        "fine",
        namespace="tenant-acme",
        status={"conditions": [condition("AffinityClassResolved", "TenantDefault", status="True")]},
    )
    view = AffinityView(definition_body(), tenant_body("acme"), refused, fine)
    (acme,) = SURFACE.places(view, NOW).tenants
    (refusal,) = acme.refusals
    assert (refusal.t, refusal.object.kind, refusal.object.name) == (AN_HOUR_AGO, "Postgres", "main-db")
    assert refusal.message == "dc9 is not allowed"


def test_refused_own_classes_are_reported_first():
    view = AffinityView(
        with_status(tenant_body("acme"), conditions=[condition("ClassesValid", "AffinityClassNotFound", "no dc9")])
    )
    (acme,) = SURFACE.places(view, NOW).tenants
    assert [(each.object.kind, each.message) for each in acme.refusals] == [("Tenant", "no dc9")]


def test_without_tenants_there_are_no_places():
    assert SURFACE.places(AffinityView(affinity_class_body("dc1")), NOW).tenants == ()
