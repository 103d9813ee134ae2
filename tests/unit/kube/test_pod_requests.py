"""Resource requests of a pod: single rules, and recorded results of the scheduler's code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeyard.kube.pod_requests import RequestingPod, of_pod, relevant_statuses
from nodeyard.kube.quantity import MILLI, NANO, QuantityError, parse

from ...builders.leaf_resources import container, given, requesting

RECORDED = json.loads((Path(__file__).parent / "recorded" / "pod_requests.json").read_text())


def cpu(amount: str, name: str = "c", **more: Any) -> dict[str, Any]:
    return container(name, {"cpu": amount}, **more)


def sidecar(amount: str, name: str = "s") -> dict[str, Any]:
    return cpu(amount, name, restartPolicy="Always")


def infeasible(**status: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}], **status}


def resized(actual: str, allocated: str, name: str = "c") -> dict[str, Any]:
    return given(name, {"cpu": actual}, {"cpu": allocated})


PHASES = {
    "containers add up": ({"containers": [cpu("500m", "a"), cpu("1", "b")]}, "1500m"),
    "the largest init container counts where it is more": (
        {"containers": [cpu("1")], "initContainers": [cpu("3", "i"), cpu("2", "j")]},
        "3",
    ),
    "init containers are nothing where the containers are more": (
        {"containers": [cpu("4")], "initContainers": [cpu("3", "i")]},
        "4",
    ),
    "a sidecar runs beside the containers": ({"containers": [cpu("1")], "initContainers": [sidecar("500m")]}, "1500m"),
    "a sidecar runs beside the init containers after it": (
        {"containers": [cpu("1")], "initContainers": [sidecar("500m"), cpu("3", "i")]},
        "3500m",
    ),
    "a sidecar does not yet run beside the init containers before it": (
        {"containers": [cpu("1")], "initContainers": [cpu("3", "i"), sidecar("500m")]},
        "3",
    ),
    "sidecars add up as they start": (
        {"containers": [cpu("1")], "initContainers": [sidecar("1", "s"), sidecar("2", "t"), cpu("5", "i")]},
        "8",
    ),
    "an init container with another restart policy is no sidecar": (
        {"containers": [cpu("1")], "initContainers": [cpu("500m", "i", restartPolicy="Never")]},
        "1",
    ),
    "overhead comes on top": ({"containers": [cpu("1")], "overhead": {"cpu": "250m"}}, "1250m"),
    "overhead comes on top of the largest phase": (
        {"containers": [cpu("1")], "initContainers": [cpu("2", "i")], "overhead": {"cpu": "250m"}},
        "2250m",
    ),
    "the pod's own requests replace those of its containers": (
        {"containers": [cpu("1"), cpu("2", "d")], "resources": {"requests": {"cpu": "5"}}},
        "5",
    ),
    "the pod's own requests replace also what is more": (
        {"containers": [cpu("3")], "initContainers": [cpu("9", "i")], "resources": {"requests": {"cpu": "2"}}},
        "2",
    ),
    "the pod's own requests do without overhead no more than containers do": (
        {"containers": [], "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "100m"}},
        "2100m",
    ),
    "the pod's own requests leave alone what they do not name": (
        {"containers": [cpu("1")], "resources": {"requests": {"memory": "1Gi"}}},
        "1",
    ),
    "limits alone request nothing": ({"containers": [cpu("1")], "resources": {"limits": {"cpu": "9"}}}, "1"),
}


@pytest.mark.parametrize(("spec", "wanted"), PHASES.values(), ids=PHASES.keys())
def test_the_larger_phase_counts(spec: dict[str, Any], wanted: str) -> None:
    assert of_pod(requesting(spec))["cpu"] == parse(wanted).nano


RESIZES = {
    "in flight upwards counts what is asked for": ("3", {"containerStatuses": [resized("1", "1")]}, "3"),
    "in flight downwards counts what is still in force": ("1", {"containerStatuses": [resized("3", "1")]}, "3"),
    "set aside counts before it is in force": ("1", {"containerStatuses": [resized("1", "2")]}, "2"),
    "that can never be granted asks for nothing": ("8", infeasible(containerStatuses=[resized("1", "2")]), "2"),
    "that can never be granted counts as asked for while nothing is in force": (
        "8",
        infeasible(containerStatuses=[given("c", None, {"cpu": "1"})]),
        "8",
    ),
    "that has to wait counts as asked for": (
        "8",
        {
            "conditions": [{"type": "PodResizePending", "reason": "Deferred"}],
            "containerStatuses": [resized("1", "1")],
        },
        "8",
    ),
    "is not what another condition speaks of": (
        "8",
        {
            "conditions": [{"type": "PodResizeInProgress", "reason": "Infeasible"}],
            "containerStatuses": [resized("1", "1")],
        },
        "8",
    ),
    "of another container is no concern": ("1", {"containerStatuses": [resized("9", "9", "other")]}, "1"),
    "known only as set aside is not counted": ("1", {"containerStatuses": [given("c", None, {"cpu": "9"})]}, "1"),
}


@pytest.mark.parametrize(("asked", "status", "wanted"), RESIZES.values(), ids=RESIZES.keys())
def test_a_resize(asked: str, status: dict[str, Any], wanted: str) -> None:
    assert of_pod(requesting({"containers": [cpu(asked)]}, status))["cpu"] == parse(wanted).nano


def test_a_resize_of_a_sidecar_counts_and_one_of_an_init_container_does_not() -> None:
    spec = {"containers": [cpu("1")], "initContainers": [sidecar("1"), cpu("1", "i")]}
    status = {"initContainerStatuses": [resized("4", "4", "s"), resized("9", "9", "i")]}
    assert of_pod(requesting(spec, status))["cpu"] == 5 * NANO


OWN = {"containers": [cpu("1")], "resources": {"requests": {"cpu": "4"}}}


def test_an_in_place_resize_counts_with_its_maximum() -> None:
    status = {"resources": {"requests": {"cpu": "6"}}, "allocatedResources": {"cpu": "5"}}
    assert of_pod(requesting(OWN, status))["cpu"] == 6 * NANO
    assert of_pod(requesting(OWN, {"allocatedResources": {"cpu": "9"}}))["cpu"] == 4 * NANO


def test_an_infeasible_resize_adds_nothing() -> None:
    status = infeasible(resources={"requests": {"cpu": "2"}}, allocatedResources={"cpu": "1"})
    assert of_pod(requesting(OWN, status))["cpu"] == 2 * NANO


def test_the_pod_itself_can_request_huge_pages_and_nothing_but_bytes_and_cpu() -> None:
    own = {"hugepages-2Mi": "4Mi", "example.com/gpu": "7", "ephemeral-storage": "1Gi"}
    spec = {"containers": [container("c", {"example.com/gpu": "1"})], "resources": {"requests": own}}
    assert of_pod(requesting(spec)) == {"hugepages-2Mi": 2**22 * NANO, "example.com/gpu": NANO}


def test_extended_resources_and_huge_pages_add_up_like_all_others() -> None:
    one = {"example.com/gpu": "1", "hugepages-1Gi": "1Gi", "memory": "64Mi"}
    spec = {"containers": [container("a", one), container("b", one)]}
    assert of_pod(requesting(spec)) == {
        "example.com/gpu": 2 * NANO,
        "hugepages-1Gi": 2**31 * NANO,
        "memory": 2**27 * NANO,
    }


def test_parts_of_a_step_are_rounded_up_once_for_the_whole_pod() -> None:
    one = {"cpu": "100u", "memory": "100m"}
    spec = {"containers": [container("a", one), container("b", one)]}
    assert of_pod(requesting(spec)) == {"cpu": MILLI, "memory": NANO}


@pytest.mark.parametrize(
    "spec", [{}, {"containers": None, "initContainers": None}, {"containers": [{"name": "c", "resources": None}]}]
)
def test_a_pod_without_requests_requests_nothing(spec: dict[str, Any]) -> None:
    assert of_pod(requesting(spec)) == {}


def test_an_invalid_quantity_is_named() -> None:
    with pytest.raises(QuantityError, match="memory: '1Gib': quantities must match"):
        of_pod(requesting({"containers": [container("c", {"cpu": "1", "memory": "1Gib"})]}))


def test_statuses_that_repeat_the_spec_are_omitted() -> None:
    pod = requesting(
        {"containers": [cpu("1", "a"), cpu("1", "b"), cpu("1", "c")]},
        {"containerStatuses": [resized("1", "1", "a"), resized("1", "2", "b"), given("c", None, {"cpu": "5"})]},
    )
    assert [each.name for each in relevant_statuses(pod.spec.containers, pod.status.container_statuses)] == ["b"]
    assert relevant_statuses(None, None) == ()


@pytest.mark.parametrize("record", RECORDED, ids=range(len(RECORDED)))
def test_a_pod_of_any_shape_requests_what_the_scheduler_counts(record: dict[str, Any]) -> None:
    """Recorded with the scheduler's code of 1.36.4 by recorded/pod_requests.go."""
    counted = {name: amount * (MILLI if name == "cpu" else NANO) for name, amount in record["requests"].items()}
    assert of_pod(msgspec.convert(record["pod"], RequestingPod)) == counted
