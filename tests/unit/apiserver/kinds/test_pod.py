"""Pods: QoS class, priority, grace period, columns; expected rows were compared with the real server's."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.kinds.pod.defaults import pull_policy
from nodeyard.apiserver.kinds.pod.strategy import PodStrategy, qos_class

from .builders import POD, container, container_status, ended, pod, running
from .pipeline import NOW, RESOURCES, changed, made

POD_STRATEGY = PodStrategy()
ALL = {"cpu": "1", "memory": "1Gi"}
CRASHING = {"reason": "CrashLoopBackOff"}
PULLING = {"reason": "ImagePullBackOff"}
INITIALIZED = {"type": "Initialized", "status": "True"}
READY = {"type": "Ready", "status": "True"}
PODS = {
    "not started": (pod(status={"phase": "Pending"}), "0/2", "Pending", "0"),
    "running": (
        pod(
            status={
                "phase": "Running",
                "conditions": [READY],
                "containerStatuses": [running("a"), running("b", restartCount=3, lastState=ended(1))],
            }
        ),
        "2/2",
        "Running",
        "3 (10m ago)",
    ),
    "the first container's trouble is named": (
        pod(
            status={
                "phase": "Running",
                "containerStatuses": [container_status("a", waiting=CRASHING), container_status("b", waiting=PULLING)],
            }
        ),
        "0/2",
        "CrashLoopBackOff",
        "0",
    ),
    "completed": (
        pod(
            status={
                "phase": "Succeeded",
                "containerStatuses": [container_status("a", **ended(reason="Completed"))],
            }
        ),
        "0/2",
        "Completed",
        "0",
    ),
    "one done, one running, not ready": (
        pod(
            status={
                "phase": "Running",
                "containerStatuses": [container_status("a", **ended(reason="Completed")), running("b")],
            }
        ),
        "1/2",
        "NotReady",
        "0",
    ),
    "one done, one running, ready": (
        pod(
            status={
                "phase": "Running",
                "conditions": [READY],
                "containerStatuses": [container_status("a", **ended(reason="Completed")), running("b")],
            }
        ),
        "1/2",
        "Running",
        "0",
    ),
    "ended without a reason": (
        pod(status={"phase": "Failed", "containerStatuses": [container_status("a", **ended(137))]}),
        "0/2",
        "ExitCode:137",
        "0",
    ),
    "ended by a signal": (
        pod(status={"phase": "Failed", "containerStatuses": [container_status("a", **ended(0, signal=9))]}),
        "0/2",
        "Signal:9",
        "0",
    ),
    "evicted": (pod(status={"phase": "Failed", "reason": "Evicted"}), "0/2", "Evicted", "0"),
    "behind a gate": (
        pod(
            status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            schedulingGates=[{"name": "a"}],
        ),
        "0/2",
        "SchedulingGated",
        "0",
    ),
    "first of two init containers runs": (
        pod(
            status={"phase": "Pending", "initContainerStatuses": [container_status("i", running={})]},
            initContainers=[container("i"), container("j")],
        ),
        "0/2",
        "Init:0/2",
        "0",
    ),
    "an init container failed": (
        pod(
            status={
                "phase": "Pending",
                "initContainerStatuses": [{**container_status("i", restarts=2, **ended(3)), "lastState": ended(3)}],
            },
            initContainers=[container("i")],
        ),
        "0/2",
        "Init:ExitCode:3",
        "2 (10m ago)",
    ),
    "an init container waits": (
        pod(
            status={"phase": "Pending", "initContainerStatuses": [container_status("i", waiting=PULLING)]},
            initContainers=[container("i")],
        ),
        "0/2",
        "Init:ImagePullBackOff",
        "0",
    ),
    "a sidecar counts": (
        pod(
            status={
                "phase": "Running",
                "conditions": [INITIALIZED],
                "initContainerStatuses": [running("i", started=True, restartCount=1)],
                "containerStatuses": [running("a"), running("b")],
            },
            initContainers=[container("i", restartPolicy="Always")],
        ),
        "3/3",
        "Running",
        "1",
    ),
    "leaving": (
        pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, status={"phase": "Running"}),
        "0/2",
        "Terminating",
        "0",
    ),
    "leaving a lost node": (
        pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, status={"phase": "Running", "reason": "NodeLost"}),
        "0/2",
        "Unknown",
        "0",
    ),
    "done and leaving": (
        pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, status={"phase": "Succeeded"}),
        "0/2",
        "Succeeded",
        "0",
    ),
}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ([{}], "BestEffort"),
        ([{"limits": ALL}], "Guaranteed"),
        ([{"limits": ALL, "requests": {"cpu": "1000m", "memory": "1024Mi"}}], "Guaranteed"),
        ([{"limits": ALL}, {}], "Burstable"),
        ([{"limits": ALL, "requests": {"cpu": "500m"}}], "Burstable"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"limits": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"example.com/gpu": "1"}}], "BestEffort"),
    ],
)
def test_the_qos_class_follows_from_requests_and_limits(resources: list[dict], quality: str) -> None:
    containers = [{"name": f"c{place}", "resources": each} for place, each in enumerate(resources)]
    assert qos_class({"containers": containers}) == quality


def test_resources_of_the_pod_itself_count_before_those_of_its_containers() -> None:
    assert qos_class({"containers": [{}], "resources": {"limits": ALL}}) == "Guaranteed"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry:5000/nginx", "Always"),
        ("registry:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:abc", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_only_images_that_move_are_always_pulled(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_a_kubelet_that_forgets_what_it_observed_does_not_erase_it() -> None:
    pod = made("", "pods", POD)
    ready = {"type": "Ready", "status": "True", "observedGeneration": 1}
    seen = {**pod, "status": {**pod["status"], "observedGeneration": 1, "conditions": [ready]}}
    forgetful = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    status = changed("", "pods", seen, is_status=True, status=forgetful)["status"]
    assert (status["observedGeneration"], status["qosClass"]) == (1, "BestEffort")
    assert status["conditions"][0]["observedGeneration"] == 1


def test_a_pod_gets_its_priority_from_the_class_it_names() -> None:
    assert made("", "pods", POD)["spec"]["priority"] == 0
    critical = made("", "pods", {**POD, "spec": {**POD["spec"], "priorityClassName": "system-node-critical"}})
    assert critical["spec"]["priority"] == 2_000_001_000


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        ({"priority": 7}, "the integer value of priority (7) must not be provided in pod spec"),
        ({"preemptionPolicy": "Never"}, "the string value of PreemptionPolicy (Never) must not be provided"),
    ],
)
def test_a_priority_of_ones_own_is_forbidden(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(ApiError) as refusal:
        made("", "pods", {**POD, "spec": {**POD["spec"], **spec}})
    assert refusal.value.code == 403
    assert words in refusal.value.message


@pytest.mark.parametrize(
    ("spec", "phase", "asked", "seconds"),
    [
        ({}, "Pending", None, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", 5, 5),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", 0, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", -1, 1),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Succeeded", None, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Failed", 60, 0),
    ],
    ids=["unassigned", "its own", "asked for", "at once", "negative", "succeeded", "failed"],
)
def test_a_pod_is_given_time_only_while_a_node_runs_it(
    spec: dict[str, Any], phase: str, asked: int | None, seconds: int
) -> None:
    assert RESOURCES["", "pods"].strategy.grace_period({"spec": spec, "status": {"phase": phase}}, asked) == seconds


def test_a_pod_whose_name_is_no_host_name_is_warned_about() -> None:
    strategy = RESOURCES["", "pods"].strategy
    assert strategy.warnings({"metadata": {"name": "web"}}, None) == []
    (warning,) = strategy.warnings({"metadata": {"name": "web.1"}}, None)
    assert warning.startswith("metadata.name: this is used in the Pod's hostname")
    assert strategy.warnings({"metadata": {"name": "web.1"}}, {}) == []


# field selectors


def test_pods_are_found_by_where_and_how_they_run() -> None:
    pod = made("", "pods", {**POD, "spec": {**POD["spec"], "nodeName": "n", "hostNetwork": True}})
    found = RESOURCES["", "pods"].strategy.selectable(
        {**pod, "status": {"phase": "Running", "podIPs": [{"ip": "1.1.1.1"}]}}
    )
    assert found == {
        "spec.nodeName": "n",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "true",
        "status.phase": "Running",
        "status.podIP": "1.1.1.1",
        "status.nominatedNodeName": "",
    }


def row(obj: dict[str, Any]) -> dict[str, Any]:
    return dict(zip((column.name for column in POD_STRATEGY.columns), POD_STRATEGY.cells(obj, NOW), strict=True))


@pytest.mark.parametrize(("obj", "ready", "status", "restarts"), PODS.values(), ids=PODS)
def test_a_pod_is_summed_up(obj: dict[str, Any], ready: str, status: str, restarts: str) -> None:
    shown = row(obj)
    assert (shown["Ready"], shown["Status"], shown["Restarts"]) == (ready, status, restarts)


def test_wide_columns_say_where_it_runs() -> None:
    shown = row(pod(nodeName="n1", status={"podIPs": [{"ip": "10.1.1.1"}], "nominatedNodeName": "n2"}))
    assert (shown["IP"], shown["Node"], shown["Nominated Node"]) == ("10.1.1.1", "n1", "n2")
    assert row(pod())["Node"] == "<none>"


def test_readiness_gates_are_counted() -> None:
    gates = [{"conditionType": "a/b"}, {"conditionType": "c/d"}]
    status = {"conditions": [{"type": "a/b", "status": "True"}, {"type": "c/d", "status": "False"}]}
    assert row(pod(readinessGates=gates, status=status))["Readiness Gates"] == "1/2"


@pytest.mark.timeout(20)
def test_a_refused_change_of_thousands_of_lines_names_the_first_that_differ() -> None:
    before, after = ([{"name": f"E{n}", "value": value} for n in range(9000)] for value in ("x", "y"))
    old = made("", "pods", {"metadata": {"name": "x"}, "spec": {"containers": [container("a", env=before)]}})

    with pytest.raises(ApiError) as refused:
        changed("", "pods", old, spec={**old["spec"], "containers": [container("a", env=after)]})

    message = refused.value.message
    assert '-     "value": "x"' in message
    assert '+     "value": "y"' in message
    assert message.endswith("...")
    assert len(message) < 4000


@pytest.mark.timeout(20)
def test_thousands_of_tolerations_may_get_others() -> None:
    tolerations = [{"key": f"k{n}", "operator": "Exists", "effect": "NoExecute"} for n in range(9000)]
    spec = {"containers": [container("a")], "tolerations": tolerations}
    old = made("", "pods", {"metadata": {"name": "x"}, "spec": spec})
    more = [*reversed(tolerations), {"key": "other", "operator": "Exists"}]

    new = changed("", "pods", old, spec={**old["spec"], "tolerations": more})

    assert len(new["spec"]["tolerations"]) == 9001
    with pytest.raises(ApiError, match="existing toleration can not be modified"):
        changed("", "pods", new, spec={**new["spec"], "tolerations": more[1:]})
