"""Usage of a leaf node by its pods."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import msgspec
import pytest

from nodeyard.capabilities.clustertree.snapshot import NOTHING, Usage
from nodeyard.capabilities.clustertree.watched import MOST_NAMES, LeafPod, add_usage, remove_usage, usage_node
from nodeyard.kube.pod_requests import of_pod
from nodeyard.kube.quantity import MILLI, NANO

from ....builders.leaf_resources import container, given, leaf_pod

ONE = {"cpu": "500m", "memory": "1Ki"}
OF_ONE = {"cpu": 500 * MILLI, "memory": 1024 * NANO}


@pytest.mark.parametrize(
    ("pod", "nodes"),
    [
        pytest.param(leaf_pod(node="n7"), ("n7",), id="a bound pod"),
        pytest.param(leaf_pod(node="n7", phase="Pending"), ("n7",), id="a bound pod that has not started"),
        pytest.param(leaf_pod(node="n7", phase="Unknown"), ("n7",), id="a pod whose node is silent"),
        pytest.param(leaf_pod(node="n7", from_root=True), ("n7",), id="a pod from the root"),
        pytest.param(leaf_pod(node="", phase="Pending"), (), id="a pod that is not bound"),
        pytest.param(leaf_pod(node="n7", phase="Succeeded"), (), id="a pod that is done"),
        pytest.param(leaf_pod(node="n7", phase="Failed"), (), id="a pod that has failed"),
    ],
)
def test_a_pod_takes_room_on_its_node_until_it_is_finished(pod: LeafPod, nodes: tuple[str, ...]) -> None:
    assert usage_node(pod) == nodes


def test_a_terminating_pod_uses_resources_until_it_is_deleted() -> None:
    raw = {
        "metadata": {"name": "p", "namespace": "ns", "deletionTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"nodeName": "n1", "containers": [container("c", ONE)]},
        "status": {"phase": "Running"},
    }
    pod = msgspec.json.decode(json.dumps(raw), type=LeafPod)
    assert usage_node(pod) == ("n1",)
    assert add_usage(NOTHING, pod).scheduled == OF_ONE


def test_a_running_pod_counts_both_ways_and_one_that_has_not_started_one_way() -> None:
    running = add_usage(NOTHING, leaf_pod(requests=ONE))
    assert running == Usage(scheduled=OF_ONE, scheduled_pods=1, running=OF_ONE, running_pods=1)
    pending = add_usage(NOTHING, leaf_pod(requests=ONE, phase="Pending"))
    assert pending == Usage(scheduled=OF_ONE, scheduled_pods=1)


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [container("a", {"cpu": "-5"}), container("b", {"cpu": "2"})]},
        {"containers": [container("b", {"cpu": "2"})], "overhead": {"cpu": "-5"}},
        {"containers": [container("b", {"cpu": "2"})], "initContainers": [container("i", {"cpu": "-5"})]},
    ],
)
def test_negative_requests_of_a_leaf_make_no_room(spec: dict[str, Any]) -> None:
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": {"nodeName": "n1", **spec}}, LeafPod)

    assert add_usage(NOTHING, pod).scheduled == {"cpu": 2 * NANO}


def test_a_pod_from_the_root_is_summed_apart() -> None:
    assert add_usage(NOTHING, leaf_pod(requests=ONE, from_root=True)) == Usage(from_root=OF_ONE, from_root_pods=1)


def test_the_label_of_the_root_has_to_say_true() -> None:
    raw = {"metadata": {"labels": {"kosmos-io/pod": "false"}}, "status": {"phase": "Pending"}}
    assert add_usage(NOTHING, msgspec.convert(raw, LeafPod)) == Usage(scheduled_pods=1)


def test_sums_return_to_zero_when_pods_are_removed_in_any_order() -> None:
    pods = [
        leaf_pod("a", requests=ONE),
        leaf_pod("b", requests={"cpu": "3", "example.com/gpu": "1"}, phase="Pending"),
        leaf_pod("c", requests={"cpu": "0"}),
        leaf_pod("d", requests={"memory": "x"}),
        leaf_pod("e", requests=ONE, from_root=True),
    ]
    full = reduce(add_usage, pods, NOTHING)
    assert full.scheduled == {"cpu": 3500 * MILLI, "memory": 1024 * NANO, "example.com/gpu": NANO}
    assert (full.scheduled_pods, full.running_pods, full.from_root_pods) == (4, 3, 1)
    assert reduce(remove_usage, [pods[3], pods[0], pods[4], pods[1], pods[2]], full) == NOTHING


def test_a_pod_with_invalid_requests_counts_as_one_pod_is_named_and_affects_no_other() -> None:
    before = add_usage(NOTHING, leaf_pod("good", requests=ONE))
    after = add_usage(before, leaf_pod("bad", requests={"cpu": "1", "memory": "lots"}))
    assert after == replace(before, scheduled_pods=2, running_pods=2, unreadable=frozenset({"ns/bad"}))


INVENTED = {
    "resources": lambda number: leaf_pod(f"p{number}", requests={f"example.com/r{number}": "1"}),
    "resources of the root": lambda number: leaf_pod(
        f"p{number}", requests={f"example.com/r{number}": "1"}, from_root=True
    ),
    "invalid requests": lambda number: leaf_pod(f"p{number}", requests={"cpu": "1x"}),
}


@pytest.mark.parametrize("invent", INVENTED.values(), ids=INVENTED)
def test_sums_do_not_grow_with_names_that_a_leaf_invents(invent: Callable[[int], LeafPod]) -> None:
    full = reduce(add_usage, map(invent, range(MOST_NAMES)), NOTHING)
    assert not full.fault
    over = add_usage(full, invent(MOST_NAMES))
    assert over == Usage(fault="its pods have more than 1000 different or invalid requests")
    assert add_usage(over, invent(0)) is remove_usage(over, invent(0)) is over


def test_arguments_are_not_changed() -> None:
    before = add_usage(NOTHING, leaf_pod("a", requests=ONE))
    add_usage(before, leaf_pod("b", requests=ONE))
    remove_usage(before, leaf_pod("a", requests=ONE))
    assert before.scheduled == before.running == OF_ONE
    assert Usage() == NOTHING


def pod_with(status: dict[str, Any]) -> LeafPod:
    spec = {"nodeName": "n1", "containers": [container("a", ONE), container("b", ONE)]}
    return msgspec.convert({"spec": spec, "status": {"phase": "Running", **status}}, LeafPod)


def test_a_status_that_repeats_the_spec_is_not_kept() -> None:
    ready = {"type": "Ready", "status": "True"}
    pod = pod_with({"containerStatuses": [given("a", ONE, ONE), given("b", ONE, ONE)], "conditions": [ready]})
    assert not pod.status.container_statuses
    assert not pod.status.conditions
    assert of_pod(pod) == {"cpu": NANO, "memory": 2048 * NANO}


def test_a_status_with_a_resize_is_kept() -> None:
    more = {"cpu": "2", "memory": "1Ki"}
    pending = {"type": "PodResizePending", "reason": "Infeasible"}
    pod = pod_with({"containerStatuses": [given("a", more, ONE), given("b", ONE, ONE)], "conditions": [pending]})
    assert [each.name for each in pod.status.container_statuses or ()] == ["a"]
    assert of_pod(pod) == {"cpu": 2500 * MILLI, "memory": 2048 * NANO}
