"""Defaults that Cluster API's webhook sets on a MachineDeployment."""

import pytest

from nodeyard.apiserver.errors import ApiError
from nodeyard.sim.machine_defaults import defaulted

BOUNDS = {
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "2",
    "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size": "4",
}


def deployment(replicas=None, annotations=None, **spec):
    told = {"clusterName": "c", "template": {"spec": {"clusterName": "c"}}, **spec}
    if replicas is not None:
        told["replicas"] = replicas
    return {"metadata": {"name": "d", "annotations": annotations or {}}, "spec": told}


@pytest.mark.parametrize(
    ("given", "before", "annotations", "count"),
    [
        (0, None, {}, 0),
        (None, None, {}, 1),
        (None, 5, {}, 1),
        (None, None, BOUNDS, 2),
        (None, 1, BOUNDS, 2),
        (None, 3, BOUNDS, 3),
        (None, 9, BOUNDS, 4),
        (7, 3, BOUNDS, 7),
    ],
)
def test_an_absent_number_is_one_or_within_the_autoscalers_bounds(given, before, annotations, count):
    old = None if before is None else deployment(before)
    assert defaulted(deployment(given, annotations), old)["spec"]["replicas"] == count


def test_a_bound_that_is_no_number_is_refused():
    broken = {**BOUNDS, "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size": "two"}
    with pytest.raises(ApiError, match='must be a number, not "two"'):
        defaulted(deployment(None, broken), None)


def test_an_empty_selector_is_filled_in_and_another_is_kept():
    own = {"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "d"}
    spec = defaulted(deployment(), None)["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == own
    spec = defaulted(deployment(selector={"matchLabels": {"a": "b"}}), None)["spec"]
    assert spec["selector"]["matchLabels"] == {"a": "b", "cluster.x-k8s.io/cluster-name": "c"}


def test_the_strategy_is_completed():
    strategy = defaulted(deployment(), None)["spec"]["rollout"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    chosen = {"strategy": {"type": "OnDelete"}}
    assert defaulted(deployment(rollout=chosen), None)["spec"]["rollout"] == chosen


def test_a_version_gets_its_v():
    spec = defaulted(deployment(template={"spec": {"clusterName": "c", "version": "1.35.0"}}), None)["spec"]
    assert spec["template"]["spec"]["version"] == "v1.35.0"
