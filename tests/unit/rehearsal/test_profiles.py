"""Delay profiles, and what a cluster's own timestamps say."""

import pytest

from nodeyard.rehearsal.profiles import PROFILES, Distribution, calibrate
from nodeyard.sim.seeded_random import SeededRandom

TYPICAL = PROFILES["typical"]


def pod(seconds, restarts=0):
    conditions = [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z",
        },
    ]
    status = {"conditions": conditions, "containerStatuses": [{"restartCount": restarts}]}
    return {"metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"}, "status": status}


def test_a_distribution_is_linear_between_its_quantiles():
    distribution = Distribution(((0, 10), (0.5, 20), (1, 100)))
    assert [distribution.at(each) for each in (0, 0.25, 0.5, 0.75, 1)] == [10, 15, 20, 60, 100]


def test_observations_become_a_distribution_with_their_extremes_and_median():
    distribution = Distribution.of([5, 1, 9, 3, 7])
    assert [distribution.at(each) for each in (0, 0.5, 1)] == [1, 5, 9]
    assert Distribution.of([4]).at(0.3) == 4


def test_delays_that_the_cluster_shows_replace_those_of_the_profile():
    calibrated = calibrate(TYPICAL, nodes=[], pods=[pod(seconds) for seconds in (2, 3, 4, 5, 6)], machines=[])
    assert str(calibrated.pod_start) == "2-6 s, median 4 s"
    assert calibrated.machine_start is TYPICAL.machine_start
    assert calibrated.description == "typical, calibrated: pod_start from 5 observations"


@pytest.mark.parametrize(
    "pods",
    [
        [pod(3)] * 4,
        [pod(3, restarts=1)] * 9,
        [{"metadata": {"name": "p"}, "status": {}}] * 9,
        [{"metadata": {"name": "p"}}] * 9,
    ],
    ids=["too few", "restarted", "no conditions", "no status"],
)
def test_a_delay_without_enough_observations_stays(pods):
    calibrated = calibrate(TYPICAL, nodes=[], pods=pods, machines=[])
    assert calibrated.pod_start is TYPICAL.pod_start
    assert calibrated.description == "typical"


def test_a_pod_ends_after_its_grace_period_in_the_typical_profile_only():
    leaving = {"metadata": {"deletionGracePeriodSeconds": 90}}
    ends = [profile.delays()["pod-end"](leaving, SeededRandom(0), "", 0) for profile in PROFILES.values()]
    assert dict(zip(PROFILES, ends, strict=True)) == {"fast": 1, "typical": 90}
