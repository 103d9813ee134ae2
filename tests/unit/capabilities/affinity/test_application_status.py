"""Statuses of applications and definitions after a pass."""

from dataclasses import replace

import msgspec
import pytest

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.application_plan import plan_application
from nodeyard.capabilities.affinity.planning.definitions import closing_patch, crd_of, plan_definition
from nodeyard.capabilities.affinity.planning.structural_schema import structural
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.report.applications import status_application
from nodeyard.capabilities.affinity.report.status import status_definition
from nodeyard.capabilities.affinity.snapshot import DefinitionSnapshot
from nodeyard.capabilities.affinity.types import ApplicationDefinition
from nodeyard.kube.patch import merge_patch

from ....builders.applications import (
    CLASSES,
    NOW,
    affinity_class,
    application,
    as_applied,
    builder,
    definition,
    definition_body,
    policy,
    snapshot,
    with_ready,
)


def passed(given, result=Result.DONE, message=""):
    """A pass over an application: its plan and results."""
    made = builder()
    plan_application(made, given)
    planned = made.planned("affinity", "key")
    results = []
    for action in planned.plan.actions:
        body = planned.write(action).body
        is_record = action.reason == Reason.CLASS_RECORDED
        after = merge_patch(given.application, body) if is_record else as_applied(body, given.release)
        answer = after if result is Result.DONE else None
        results.append(ActionResult(action=action, result=result, message=message, answer=answer))
    return planned.plan, Outcome(results=tuple(results))


def status_of(given, **outcome):
    writes = status_application(given, *passed(given, **outcome), NOW)
    return None if not writes else writes[0].status


def released(spec, **given):
    _plan, outcome = passed(snapshot(spec, **given))
    return with_ready(outcome.results[-1].answer, lastAttemptedRevision="1.2.0")


def conditions(status):
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


def message(status, kind):
    return next(each["message"] for each in status["conditions"] if each["type"] == kind)


# applications


def test_a_new_application_waits_for_its_release():
    status = status_of(snapshot({"affinityClass": "dc1"}))
    assert conditions(status) == {
        "Ready": ("Unknown", "ReleasePending"),
        "AffinityClassResolved": ("True", "ChosenByApplication"),
        "PlacementEnforced": ("True", "Enforced"),
    }
    assert all(each["observedGeneration"] == 1 for each in status["conditions"])


def test_a_released_application_reports_its_class_and_the_state_of_the_release():
    given = snapshot({"affinityClass": "dc1"}, release=released({"affinityClass": "dc1"}))
    status = status_of(given)
    assert conditions(status)["Ready"] == conditions(status)["Released"] == ("True", "InstallSucceeded")
    assert {name: value for name, value in status.items() if name != "conditions"} == {
        "observedGeneration": 1,
        "version": "1.2.0",
        "release": "postgres-main-db",
        "affinityClass": "dc1",
        "nodeSelector": {"topology.kubernetes.io/zone": "dc1"},
    }


def test_an_unchanged_status_is_not_written():
    given = snapshot({}, release=released({}))
    status = status_of(given)
    again = replace(given, application={**given.application, "status": status})
    assert status_of(again) is None


def test_foreign_status_fields_are_kept():
    theirs = {
        "externalIPs": 2,
        "conditions": [
            {"type": "WorkloadsReady", "status": "True", "reason": "All", "message": "", "lastTransitionTime": None}
        ],
    }
    given = snapshot(app={**application({}), "status": theirs}, release=released({}))
    status = status_of(given)
    assert status["externalIPs"] == 2
    assert conditions(status)["WorkloadsReady"] == ("True", "All")


def test_a_release_with_an_old_observed_generation_is_not_ready():
    old = with_ready(released({}), generation=0)
    assert conditions(status_of(snapshot({}, release=old)))["Ready"] == ("Unknown", "ReleasePending")


def test_while_the_class_changes_both_are_reported():
    given = snapshot({"affinityClass": "dc2"}, release=released({"affinityClass": "dc1"}))
    status = status_of(given)
    assert (status["affinityClass"], status["previousAffinityClass"]) == ("dc2", "dc1")
    assert conditions(status)["PlacementEnforced"] == ("True", "SwitchingClass")


REFUSED = [
    ({"affinityClass": "dc9"}, policy(), "AffinityClassNotFound"),
    ({"affinityClass": "dc3"}, policy("", ("dc1",)), "AffinityClassNotAllowed"),
    ({}, policy("dc3", ("dc1",), "it is not allowed"), "DefaultNotAllowed"),
]


@pytest.mark.parametrize(("spec", "tenant", "reason"), REFUSED, ids=[each[2] for each in REFUSED])
def test_a_refused_class_is_in_the_condition_of_the_class_and_in_ready(spec, tenant, reason):
    status = status_of(snapshot(spec, policy=tenant))
    assert conditions(status)["Ready"] == conditions(status)["AffinityClassResolved"] == ("False", reason)
    assert conditions(status)["PlacementEnforced"] == ("False", "ReleasePending")
    assert "affinityClass" not in status
    assert message(status, "Ready").count("main-db") == 1


def test_a_refused_change_leaves_the_class_in_effect():
    given = snapshot({"affinityClass": "dc9"}, release=released({"affinityClass": "dc1"}))
    status = status_of(given)
    assert status["affinityClass"] == "dc1"
    assert conditions(status)["PlacementEnforced"] == ("True", "Enforced")
    assert conditions(status)["AffinityClassResolved"] == ("False", "AffinityClassNotFound")


def test_a_withdrawn_class_is_reported_and_the_application_is_as_ready_as_its_release():
    live = released({"affinityClass": "dc1"})
    status = status_of(snapshot({"affinityClass": "dc1"}, policy=policy("", ("dc2",)), release=live))
    assert conditions(status)["Ready"] == ("True", "InstallSucceeded")
    assert conditions(status)["AffinityClassResolved"] == ("False", "AffinityClassWithdrawn")


@pytest.mark.parametrize(
    ("classes", "spec", "expected"),
    [
        (CLASSES, {}, ("False", "NoClass")),
        ({"dc1": affinity_class("dc1", enforcement="Warn")}, {"affinityClass": "dc1"}, ("False", "NotEnforced")),
        ({}, {"affinityClass": "dc1"}, ("False", "AffinityClassNotFound")),
    ],
    ids=["no class", "only warns", "the class is gone"],
)
def test_placement_that_nobody_enforces_is_reported(classes, spec, expected):
    status = status_of(snapshot(spec, classes=classes, release=released(spec)))
    assert conditions(status)["PlacementEnforced"] == expected


WEAK = {"dc1": affinity_class("dc1", allowNamespaceOverride=True)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"is_webhook_registered": False}, ("False", "WebhooksNotRegistered")),
        ({"namespace_labels": {names.SYSTEM_NAMESPACE: "true"}}, ("False", "NamespaceExempt")),
        ({"namespace_labels": {names.ENFORCEMENT: "Warn"}, "classes": WEAK}, ("False", "NotEnforced")),
        ({"namespace_labels": {names.ENFORCEMENT: "Warn"}}, ("True", "Enforced")),
    ],
    ids=["nobody is asked", "the namespace is exempt", "the namespace weakens it", "it may not"],
)
def test_placement_that_is_not_enforced_here_is_reported(given, expected):
    spec = {"affinityClass": "dc1"}
    status = status_of(snapshot(spec, release=released(spec), **given))
    assert conditions(status)["PlacementEnforced"] == expected


def test_an_application_that_is_released_under_another_name_is_not_released_a_second_time():
    status = status_of(snapshot({}, other_release="pg-main-db"))
    assert conditions(status)["Ready"] == ("False", "ReleasedUnderAnotherName")
    assert "HelmRelease tenant-acme/pg-main-db" in message(status, "Ready")


def test_a_foreign_release_is_not_reported_as_ours():
    foreign = released({})
    foreign["metadata"]["labels"] = {}
    foreign["metadata"]["ownerReferences"][0]["uid"] = "uid-of-another"
    status = status_of(snapshot({}, release=foreign))
    assert conditions(status)["Ready"] == ("False", "NameConflict")
    assert "release" not in status


def test_a_write_that_was_refused_is_reported_with_its_error():
    status = status_of(snapshot({}), result=Result.DENIED, message="policy says no")
    assert conditions(status)["Ready"] == ("False", "ClassRecordedFailed")
    assert message(status, "Ready") == "Postgres tenant-acme/main-db: policy says no"


def test_an_application_being_deleted_gets_no_status():
    assert status_of(snapshot(app=application({}, deletionTimestamp="2026-01-01T00:00:00Z"))) is None


# definitions


ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}]}
REFUSED_NAMES = {"conditions": [{"type": "NamesAccepted", "status": "False", "message": '"pg" is already in use'}]}
GUARDED = {"finalizers": [names.DEFINITION_FINALIZER]}


def crd(of=None, status=ESTABLISHED, **metadata):
    of = of or definition()
    body = crd_of(of, structural(of.spec.application.open_api_schema)[0])
    return {**as_applied(body, **metadata), "status": status}


def definition_status(of=None, result=Result.DONE, **given):
    given = DefinitionSnapshot(definition=of or definition(**GUARDED), **given)
    made = builder()
    plan_definition(made, given)
    planned = made.planned("affinity", "key")
    results = tuple(
        ActionResult(action=each, result=result, message="no", answer=planned.write(each).body)
        for each in planned.plan.actions
    )
    writes = status_definition(given, planned.plan, Outcome(results=results), NOW)
    return None if not writes else writes[0].status


TOLD = [
    ("served", {"crd": crd()}, ("True", "Served"), ("True", "Served")),
    ("just made", {}, ("False", "Establishing"), ("False", "Establishing")),
    ("names taken", {"crd": crd(status=REFUSED_NAMES)}, ("False", "Establishing"), ("False", "Establishing")),
    ("of another", {"crd": crd(labels={})}, ("True", "CRDNotManaged"), ("True", "CRDNotManaged")),
    ("by an APIService", {"is_served_elsewhere": True}, ("True", "ServedByAPIService"), ("True", "ServedByAPIService")),
    ("called otherwise", {"former": ["pgs.apps.cozystack.io"], "crd": crd(labels={})},
     ("False", "InvalidDefinition"), ("False", "InvalidDefinition")),
    ("a rival", {"rivals": ["older"], "crd": crd(labels={})},
     ("False", "DuplicateDefinition"), ("False", "DuplicateDefinition")),
    ("a bad schema over a good one", {"of": definition(schema="{", **GUARDED), "crd": crd()},
     ("False", "InvalidSchema"), ("True", "Served")),
    ("a bad schema", {"of": definition(schema="{", **GUARDED)}, ("False", "InvalidSchema"), ("False", "InvalidSchema")),
    ("unwatched", {"crd": crd(), "watch_error": "forbidden"}, ("False", "ApplicationsUnwatched"), ("True", "Served")),
    ("a write that failed", {"result": Result.FAILED}, ("False", "DefinitionServedFailed"), ("False", "Establishing")),
]  # fmt: skip


@pytest.mark.parametrize(("given", "ready", "served"), [each[1:] for each in TOLD], ids=[each[0] for each in TOLD])
def test_a_definition_says_whether_its_kind_is_served_and_as_declared(given, ready, served):
    found = conditions(definition_status(**given))
    assert (found["Ready"], found["Served"]) == (ready, served)


def test_a_ready_definition_reports_what_is_left_out_of_its_schema():
    rich = definition(schema={"patternProperties": {}}, **GUARDED)
    status = definition_status(rich, crd=crd(rich), applications=3)
    assert conditions(status)["Ready"] == ("True", "SchemaSimplified")
    assert status["applications"] == 3
    assert "patternProperties of spec" in message(status, "Served")


def test_names_that_the_server_does_not_accept_are_reported():
    assert '"pg" is already in use' in message(definition_status(crd=crd(status=REFUSED_NAMES)), "Ready")


def test_the_status_of_a_definition_is_written_once():
    status = definition_status(crd=crd())
    body = definition_body(**GUARDED)
    assert definition_status(of=msgspec.convert({**body, "status": status}, ApplicationDefinition), crd=crd()) is None


def test_a_definition_that_waits_for_deletion_names_its_users_and_then_nothing():
    going = definition(deletionTimestamp="2026-01-01T00:00:00Z", **GUARDED)
    assert conditions(definition_status(going, crd=crd(), applications=1))["Ready"] == ("False", "DefinitionInUse")
    assert definition_status(going) is None
    closed = merge_patch(crd(), closing_patch(crd(), NOW))
    found = conditions(definition_status(going, crd=closed))
    assert found == {"Ready": ("False", "DefinitionClosed"), "Served": ("True", "Served")}
