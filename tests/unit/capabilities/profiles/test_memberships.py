"""What a profile says of itself."""

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
    telemetry_profile_body,
)

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.memberships import (
    ProfileSnapshot,
    collect_profile,
    status_membership,
)
from nodeyard.capabilities.profiles.overviews import plan_nothing
from nodeyard.capabilities.profiles.planning.availability import written
from nodeyard.kube.json import Object


def collected(service: str, body: Object, *others: Object, now: datetime = NOW) -> ProfileSnapshot:
    view: Any = ProfilesView(body, *others)
    snapshot = collect_profile(view, service, NAMESPACE, body["metadata"]["name"], now)
    assert snapshot is not None
    return snapshot


def condition(of: str, snapshot: ProfileSnapshot, now: datetime = NOW) -> tuple[str, str, str]:
    """Its status, reason and message."""
    (write,) = status_membership(snapshot, now)
    found = next(each for each in write.status["conditions"] if each["type"] == of)
    return found["status"], found["reason"], found["message"]


def ready(service: str, body: Object) -> tuple[str, str, str]:
    return condition("Ready", collected(service, body))


def test_a_profile_that_can_be_read_is_ready() -> None:
    assert ready(names.NOVA, compute_profile_body("p", SHARED))[:2] == ("True", "Reconciled")


def test_configuration_that_no_service_can_read_is_told() -> None:
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
def test_configuration_that_is_empty_is_told_where_no_webhook_warns(service: str, body: Object) -> None:
    status, reason, message = ready(service, body)
    assert (status, reason) == ("True", "ConfigurationDoubtful")
    assert "indent" in message


def test_an_option_that_is_set_twice_is_told_with_its_lines() -> None:
    status, reason, message = ready(names.NOVA, compute_profile_body("p", "[a]\nb = 1\nb = 2\n"))
    assert (status, reason) == ("True", "ConfigurationDoubtful")
    assert "line 3" in message


def test_a_profile_is_on_its_way_until_a_deadline_and_then_says_who_stopped_it() -> None:
    told = compute_body("n0", "p", annotations={names.HASH: "new", names.WRITTEN: written(NOW)})
    profile, late = compute_profile_body("p", SHARED), NOW + timedelta(seconds=600)

    before = collected(names.NOVA, profile, told)
    assert condition("Progressing", before)[:2] == ("True", "RollingOut")
    assert plan_nothing(before, NOW).plan.wake_at == late

    after = collected(names.NOVA, profile, told, now=late)
    status, reason, message = condition("Progressing", after, late)
    assert (status, reason) == ("False", "ProgressDeadlineExceeded")
    assert "n0 does not report" in message
    assert plan_nothing(after, late).plan.wake_at is None
