"""Status of profiles."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.builders.profile_views import ProfilesView
from tests.builders.profiles import (
    NAMESPACE,
    NOW,
    SHARED,
    compute_body,
    compute_profile_body,
    node_body,
    telemetry_profile_body,
)

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.collect.profiles import collect_profile
from nodeyard.capabilities.profiles.planning.profiles import plan_status
from nodeyard.capabilities.profiles.report.profiles import report_status
from nodeyard.capabilities.profiles.snapshot import ProfileSnapshot
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339


def collected(service: str, body: Object, *others: Object, now: datetime = NOW) -> ProfileSnapshot:
    view: Any = ProfilesView(body, *others)
    snapshot = collect_profile(view, service, NAMESPACE, body["metadata"]["name"], now)
    assert snapshot is not None
    return snapshot


def condition(of: str, snapshot: ProfileSnapshot, now: datetime = NOW) -> tuple[str, str, str]:
    """Return status, reason and message of a condition."""
    (write,) = report_status(snapshot, now)
    found = next(each for each in write.status["conditions"] if each["type"] == of)
    return found["status"], found["reason"], found["message"]


def ready(service: str, body: Object) -> tuple[str, str, str]:
    return condition("Ready", collected(service, body))


def test_a_profile_that_can_be_read_is_ready() -> None:
    assert ready(names.NOVA, compute_profile_body("p", SHARED))[:2] == ("True", "Reconciled")


def test_configuration_that_no_service_can_read_is_reported() -> None:
    assert ready(names.NOVA, compute_profile_body("p", "a = b\n"))[:2] == ("False", "ConfigurationInvalid")


@pytest.mark.parametrize(
    ("service", "body"),
    [
        (names.NOVA, compute_profile_body("p", "")),
        (names.NOVA, compute_profile_body("p", "# [compute]\n")),
        (names.TELEMETRY, telemetry_profile_body("p", "")),
    ],
    ids=["empty", "comments-alone", "of-a-service-without-objects"],
)
def test_empty_configuration_is_reported_where_no_webhook_warns(service: str, body: Object) -> None:
    status, reason, message = ready(service, body)
    assert (status, reason) == ("True", "ConfigurationWarning")
    assert "indent" in message


def test_an_option_that_is_set_twice_is_reported_with_its_lines() -> None:
    status, reason, message = ready(names.NOVA, compute_profile_body("p", "[a]\nb = 1\nb = 2\n"))
    assert (status, reason) == ("True", "ConfigurationWarning")
    assert "line 3" in message


def test_a_profile_progresses_until_its_deadline_and_then_names_the_blocker() -> None:
    told = compute_body("n0", "p", annotations={names.HASH: "new", names.WRITTEN: format_rfc3339(NOW)})
    profile, late = compute_profile_body("p", SHARED, progress="Report"), NOW + timedelta(seconds=600)

    before = collected(names.NOVA, profile, told)
    assert condition("Progressing", before)[:2] == ("True", "RollingOut")
    assert plan_status(before, NOW).plan.wake_at == late

    after = collected(names.NOVA, profile, told, now=late)
    status, reason, message = condition("Progressing", after, late)
    assert (status, reason) == ("False", "ProgressDeadlineExceeded")
    assert "n0 did not become available" in message
    assert plan_status(after, late).plan.wake_at is None


def test_a_rollout_waits_for_reports_once_an_object_of_the_service_has_reported() -> None:
    told = {names.HASH: "new", names.GENERATION: "1", names.WRITTEN: format_rfc3339(NOW)}
    silent = compute_body("n0", "p", annotations=told)
    reporting = {**compute_body("n1", "other", annotations=told), "status": {"hash": {"profile": "old"}}}
    profile = compute_profile_body("p", SHARED)

    status, reason, message = condition("Progressing", collected(names.NOVA, profile, silent))
    assert (status, reason) == ("False", "Available")
    assert "the rollout does not wait for status.hash.profile of NovaExternalCompute (progress: Ignore)" in message

    assert condition("Progressing", collected(names.NOVA, profile, silent, reporting))[:2] == ("True", "RollingOut")
    ignoring = compute_profile_body("p", SHARED, progress="Ignore")
    assert condition("Progressing", collected(names.NOVA, ignoring, silent, reporting))[:2] == ("False", "Available")


def test_an_object_that_says_it_is_not_ready_is_waited_for_though_reports_are_ignored() -> None:
    told = {names.HASH: "new", names.GENERATION: "1", names.WRITTEN: format_rfc3339(NOW)}
    failing = {"conditions": [{"type": "Ready", "status": "False"}]}
    compute = {**compute_body("n0", "p", annotations=told), "status": failing}
    assert condition("Progressing", collected(names.NOVA, compute_profile_body("p", SHARED), compute))[0] == "True"


def test_a_profile_of_a_service_without_objects_says_how_many_nodes_choose_it() -> None:
    choosing = node_body("n0", annotations={names.TELEMETRY_PROFILE: "p"})
    seen = collected(names.TELEMETRY, telemetry_profile_body("p", "[a]\nb = 1\n"), choosing)
    assert condition("Progressing", seen) == (
        "False",
        "Available",
        "TelemetryProfile p is chosen for 1 node; telemetry has no service objects to roll out to",
    )
    assert (seen.node_count, seen.updated) == (1, 1)


def test_a_profile_that_no_node_has_does_not_say_0_of_0() -> None:
    _, _, message = condition("Progressing", collected(names.NOVA, compute_profile_body("p", SHARED)))
    assert message == "ComputeProfile p is not deployed on any node"
