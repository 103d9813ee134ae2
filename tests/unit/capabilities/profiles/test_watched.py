"""Malformed fields of declared kinds are treated as missing."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.planning.rollout import deadline_seconds, is_available
from nodeyard.kube.json import Object

from ....builders.profiles import service

STORAGE = service("storage")


def of_spec(spec: Any) -> Object:
    return {"metadata": {"name": "fast", "namespace": "openstack"}, "spec": spec}


def reporting(status: Any) -> Object:
    return {"metadata": {"name": "n0", "namespace": "openstack", "annotations": {names.HASH: "h"}}, "status": status}


@pytest.mark.parametrize("priority", ["high", None, 1.5, [1]])
def test_a_priority_that_is_no_number_counts_as_unset(priority: Any) -> None:
    assert watched.parse_profile(STORAGE, of_spec({"nodeSelector": {}, "priority": priority})).priority == 0


@pytest.mark.parametrize("spec", ["text", ["a"], 1, None])
def test_a_spec_without_fields_has_no_values(spec: Any) -> None:
    assert watched.parse_profile(STORAGE, of_spec(spec)).config == ""
    assert list(watched.selecting(of_spec(spec))) == []
    assert list(watched.by_profile("profileName")(of_spec(spec))) == ["openstack/"]


@pytest.mark.parametrize("seconds", [10**14, 2**31])
def test_a_deadline_beyond_all_dates_is_far_and_a_date(seconds: int) -> None:
    profile = watched.parse_profile(STORAGE, of_spec({"progressDeadlineSeconds": seconds}))
    assert deadline_seconds(STORAGE, profile) == 2**31 - 1


@pytest.mark.parametrize("seconds", [0, -1, "soon"])
def test_a_deadline_below_one_second_is_ignored(seconds: Any) -> None:
    profile = watched.parse_profile(STORAGE, of_spec({"progressDeadlineSeconds": seconds}))
    assert deadline_seconds(STORAGE, profile) == 600


@pytest.mark.parametrize(
    "status",
    [
        "fine",
        {"hash": "h", "conditions": [{"type": "Ready", "status": "True"}]},
        {"hash": {"profile": "h"}, "conditions": "fine"},
        {"hash": {"profile": "h"}, "conditions": ["Ready"]},
        {"hash": ["h"], "conditions": {"Ready": "True"}},
    ],
)
def test_a_status_of_another_form_reports_nothing(status: Any) -> None:
    assert not is_available(reporting(status))


def test_a_status_of_the_agreed_form_reports_what_runs() -> None:
    assert is_available(reporting({"hash": {"profile": "h"}, "conditions": [{"type": "Ready", "status": "True"}]}))
