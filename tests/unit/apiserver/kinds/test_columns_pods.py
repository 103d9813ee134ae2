"""The one word that `kubectl get pods` has for a pod; expected rows were compared with the real server's."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.kinds.pod.columns import PRINTER
from nodeyard.apiserver.kinds.pod_template import PodTemplateStrategy

from .builders import container, container_status, ended, pod, running, workload
from .pipeline import NOW

CRASHING = {"reason": "CrashLoopBackOff"}
PULLING = {"reason": "ImagePullBackOff"}
INITIALIZED = {"type": "Initialized", "status": "True"}
READY = {"type": "Ready", "status": "True"}


def row(obj: dict[str, Any]) -> dict[str, Any]:
    return dict(zip((column.name for column in PRINTER.columns), PRINTER.cells(obj, NOW), strict=True))


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


def test_a_pod_template_shows_its_containers() -> None:
    template = workload()["spec"]["template"]
    cells = PodTemplateStrategy.printer.cells({"metadata": {"name": "t"}, "template": template}, NOW)
    assert cells == ["t", "a,b", "registry/a:v1,registry/b:v1", "app=a"]
