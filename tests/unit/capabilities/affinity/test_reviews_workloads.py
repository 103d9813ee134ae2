"""Reviews of workloads: early warnings about their pods."""

import pytest
from tests.builders.applications import ZONE, api_service
from tests.builders.placements import (
    PlacementView,
    affinity_class_body,
    body,
    installed,
    namespace,
    release,
    review,
    tenant,
)

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reviews.workloads import review_workload
from nodeyard.runtime.webhooks import Lookup

VIEW = PlacementView(release(), affinity_class_body("dc1"), namespace())
KINDS = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
]


def workload(api_version="apps/v1", kind="Deployment", *, zone="", selector=None, **given):
    template = {"spec": {"nodeSelector": {ZONE: zone} if zone else {}}}
    spec = {"template": template, **({"selector": {"matchLabels": selector}} if selector else {})}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    return installed(api_version, kind, "main-db", spec=spec, **given)


@pytest.mark.parametrize(("api_version", "kind"), KINDS)
def test_a_template_outside_the_class_is_warned_about(api_version, kind):
    response = review_workload(review(workload(api_version, kind)), VIEW)

    assert response.is_allowed
    assert response.warnings == (
        f'template of {kind} tenant-acme/main-db belongs to application with AffinityClass "dc1" but missing required '
        "nodeSelector topology.kubernetes.io/zone=dc1: its pods will be denied",
    )


@pytest.mark.parametrize(("api_version", "kind"), KINDS)
def test_a_template_that_keeps_to_the_class_is_not(api_version, kind):
    assert review_workload(review(workload(api_version, kind, zone="dc1")), VIEW).warnings == ()


@pytest.mark.parametrize(
    ("enforcement", "ending"),
    [("Warn", ("its pods will be admitted with a warning",)), ("Audit", ())],
    ids=["Warn", "Audit"],
)
def test_the_warning_follows_the_enforcement_of_the_class(enforcement, ending):
    view = PlacementView(release(), affinity_class_body("dc1", enforcement=enforcement), namespace())

    warnings = review_workload(review(workload()), view).warnings

    assert tuple(each.rpartition(": ")[2] for each in warnings) == ending


def test_a_workload_of_workloads_is_warned_of_once():
    deployment = workload()
    made = workload("apps/v1", "ReplicaSet", owners=[deployment])

    assert review_workload(review(made), VIEW).warnings == ()


def test_an_unchanged_template_gets_no_warning():
    old, new = workload(), workload()
    new["spec"]["replicas"] = 3

    assert review_workload(review(new, operation="UPDATE", old=old), VIEW).warnings == ()
    assert len(review_workload(review(workload(), operation="UPDATE", old=workload(zone="dc1")), VIEW).warnings) == 1


def test_its_own_owner_is_looked_up_where_it_is_not_cached():
    owner = body("example.dev/v1", "Database", "main")

    assert isinstance(
        review_workload(review(body("apps/v1", "StatefulSet", "main", owners=[owner], spec={})), VIEW), Lookup
    )


def test_pods_without_application_that_would_be_denied_are_warned_about():
    strict = tenant(allowedAffinityClasses=["dc1"], unownedPods="RequireAllowed")
    view = PlacementView(strict, affinity_class_body("dc1"), namespace())
    bare = body("apps/v1", "Deployment", "tool", spec={"template": {"spec": {}}})

    assert review_workload(review(bare), view).warnings[0].endswith("its pods will be denied")


def test_a_selector_by_a_label_that_its_pods_will_not_have_is_refused():
    """Its controller would create pods endlessly."""
    response = review_workload(review(workload(zone="dc1", selector={names.APPLICATION_NAME: "mine"})), VIEW)

    assert (response.is_allowed, response.code) == (False, 422)
    assert f"{names.APPLICATION_NAME}=mine" in response.message
    assert f"these pods have {names.APPLICATION_NAME}=main-db" in response.message


@pytest.mark.parametrize(
    "selector",
    [{names.APPLICATION_NAME: "main-db", names.AFFINITY_CLASS: "dc1"}, {"app": "db"}],
    ids=["the values they will have", "labels of its own"],
)
def test_any_other_selector_is_fine(selector):
    assert review_workload(review(workload(zone="dc1", selector=selector)), VIEW).is_allowed


def test_a_workload_that_is_there_already_can_still_be_changed():
    old = workload(zone="dc1", selector={names.APPLICATION_NAME: "mine"})
    new = workload(selector={names.APPLICATION_NAME: "mine"})

    assert review_workload(review(new, operation="UPDATE", old=old), VIEW).is_allowed


@pytest.mark.parametrize("spec", [None, {}, {"template": "none"}, {"jobTemplate": None}, {"template": {"spec": []}}])
def test_invalid_templates_are_left_to_the_server(spec):
    assert review_workload(review(body("apps/v1", "Deployment", "odd", spec=spec)), VIEW).is_allowed


def test_beside_cozystack_a_selector_by_its_own_labels_is_not_reviewed():
    body = workload(zone="dc1", selector={names.APPLICATION_NAME: "else"})

    assert not review_workload(review(body), VIEW).is_allowed
    beside = PlacementView(release(), affinity_class_body("dc1"), namespace(), api_service())
    assert review_workload(review(body), beside).is_allowed
    by_stamp = workload(zone="dc1", selector={names.AFFINITY_CLASS: "else"})
    assert not review_workload(review(by_stamp), beside).is_allowed
