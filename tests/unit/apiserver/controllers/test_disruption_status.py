from datetime import timedelta

import pytest

from nodeyard.apiserver.controllers import disruption_status as statuses
from nodeyard.apiserver.controllers.disruption_status import Counts, ScaleError
from nodeyard.apiserver.controllers.metadata import OwnerReference
from nodeyard.apiserver.controllers.pod_facts import PodFacts
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.process.clock import EPOCH

SCALES = {"web": ("web", 10), "db": ("db", 3)}


def pod(controller=None, *, ready=True, deleting=False):
    owner = OwnerReference("apps/v1", "ReplicaSet", controller, controller, controller=True) if controller else None
    return PodFacts({}, ready, deleting, owner)


PODS = {"web-1": pod("web"), "web-2": pod("web"), "db-1": pod("db")}


@pytest.mark.parametrize(
    ("spec", "expected", "desired"),
    [
        ({"minAvailable": 2}, 3, 2),
        ({"minAvailable": 0}, 3, 0),
        ({"minAvailable": "50%"}, 13, 7),
        ({"minAvailable": "100%"}, 13, 13),
        ({"maxUnavailable": 1}, 13, 12),
        ({"maxUnavailable": 20}, 13, 0),
        ({"maxUnavailable": "30%"}, 13, 9),
        ({"maxUnavailable": "0%"}, 13, 13),
        ({}, 3, 0),
    ],
    ids=str,
)
def test_how_many_pods_are_expected_and_how_many_must_be_healthy(spec, expected, desired):
    assert statuses.count(spec, PODS, SCALES) == Counts(expected, desired)


def test_unmanaged_pods_are_not_expected_with_a_percentage():
    assert statuses.count({"maxUnavailable": 1}, {"lone": pod()}, {}) == Counts(0, 0)
    assert statuses.count({"minAvailable": 1}, {"lone": pod()}, {}) == Counts(1, 1)


def test_a_deleted_controller_fails_the_count():
    with pytest.raises(ScaleError, match='found no controllers for pod "web-1"'):
        statuses.count({"maxUnavailable": 1}, PODS, {"db": ("db", 3)})


def test_two_replica_sets_of_a_deployment_count_once():
    pods = {"a": pod("old"), "b": pod("new")}
    scales = {"old": ("deployment", 4), "new": ("deployment", 4)}
    assert statuses.count({"minAvailable": "50%"}, pods, scales) == Counts(4, 2)


def test_pods_not_ready_leaving_or_about_to_leave_are_not_healthy():
    pods = {"well": pod(), "ill": pod(ready=False), "leaving": pod(deleting=True), "granted": pod()}
    assert statuses.healthy(pods, {"granted": "whenever"}) == 1


def test_an_eviction_is_remembered_until_the_pod_leaves_or_two_minutes_have_passed():
    fresh, stale = format_rfc3339(EPOCH - timedelta(seconds=30)), format_rfc3339(EPOCH - timedelta(seconds=121))
    granted = {"waits": fresh, "leaves": fresh, "gone": fresh, "forgotten": stale}
    pods = {"waits": pod(), "leaves": pod(deleting=True), "forgotten": pod()}
    found = statuses.disrupted(granted, pods, EPOCH)
    assert found.pods == {"waits": fresh}
    assert found.recheck_at == EPOCH + timedelta(seconds=90)


def test_an_empty_disrupted_map_needs_no_resync():
    assert statuses.disrupted({}, {}, EPOCH) == ({}, None)


def budget(**status):
    return {"metadata": {"name": "b", "generation": 3}, "spec": {}, **({"status": status} if status else {})}


def test_the_status_has_the_allowed_disruptions():
    status = statuses.status(budget(), Counts(5, 3), 5, {}, EPOCH)
    assert status == {
        "observedGeneration": 3,
        "disruptionsAllowed": 2,
        "currentHealthy": 5,
        "desiredHealthy": 3,
        "expectedPods": 5,
        "conditions": [
            {
                "type": "DisruptionAllowed",
                "status": "True",
                "reason": "SufficientPods",
                "message": "",
                "observedGeneration": 3,
                "lastTransitionTime": format_rfc3339(EPOCH),
            }
        ],
    }


@pytest.mark.parametrize(("counts", "healthy"), [(Counts(5, 3), 3), (Counts(5, 3), 1), (Counts(0, 0), 4)])
def test_no_disruption_is_allowed_with_too_few_healthy_or_no_expected_pods(counts, healthy):
    status = statuses.status(budget(), counts, healthy, {}, EPOCH)
    assert status["disruptionsAllowed"] == 0
    assert status["conditions"][0]["reason"] == "InsufficientPods"


def test_a_status_that_is_right_already_is_left_alone():
    made = budget()
    made["status"] = statuses.status(made, Counts(5, 3), 5, {"p": "t"}, EPOCH)
    assert statuses.status(made, Counts(5, 3), 5, {"p": "t"}, EPOCH + timedelta(hours=1)) is made["status"]


def test_a_failure_forbids_and_says_why():
    status = statuses.failed(budget(disruptionsAllowed=2, currentHealthy=4, observedGeneration=3), "no idea", EPOCH)
    assert status["disruptionsAllowed"] == 0
    assert status["currentHealthy"] == 4
    assert statuses.sync_failure(status["conditions"]) == "no idea"
    assert statuses.sync_failure([]) == ""
