"""Resources offered by a leaf: by the formula, never negative, in canonical texts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import pytest

from nodeyard.capabilities.clustertree.planning.resources import Free, changes, differs, free, text_of
from nodeyard.capabilities.clustertree.snapshot import NOTHING, TreeNode, Usage
from nodeyard.capabilities.clustertree.types import Counting, ResourceOptions
from nodeyard.capabilities.clustertree.watched import MOST_NAMES, LeafPod, add_usage, usage_node
from nodeyard.kube.quantity import MILLI, NANO, canonical

from ....builders.leaf_resources import leaf_node, leaf_pod

SMALL = {"cpu": "4", "memory": "8Gi", "pods": "10"}
GPU = {"cpu": "8", "memory": "16Gi", "pods": "20", "example.com/gpu": "2"}
ONE = {"cpu": "1500m", "memory": "1Gi"}


def of(nodes: list[TreeNode], pods: list[LeafPod] | None = None, **options: object) -> Free:
    used: dict[str, Usage] = {}
    for pod in pods or ():
        for node in usage_node(pod):
            used[node] = add_usage(used.get(node, NOTHING), pod)
    return free(nodes, lambda name: used.get(name, NOTHING), ResourceOptions(**options))  # type: ignore[arg-type]


def test_an_empty_leaf_has_no_resources() -> None:
    assert of([]) == Free()


def test_leaf_nodes_add_up_and_every_resource_of_any_is_named() -> None:
    found = of([leaf_node("a", SMALL), leaf_node("b", GPU)])
    assert found.capacity == {"cpu": "12", "memory": "24Gi", "pods": "30", "example.com/gpu": "2"}
    assert found.allocatable == found.capacity
    assert found.largest == {}


def test_pods_reduce_resources_by_their_requests_and_one_pod_each() -> None:
    pods = [leaf_pod("x", "a", ONE), leaf_pod("y", "b", {**ONE, "example.com/gpu": "1"})]
    found = of([leaf_node("a", SMALL), leaf_node("b", GPU)], pods)
    assert found.capacity == {"cpu": "9", "memory": "22Gi", "pods": "28", "example.com/gpu": "1"}


def test_pods_from_the_root_are_not_subtracted() -> None:
    assert of([leaf_node("a", SMALL)], [leaf_pod("x", "a", ONE, from_root=True)]).capacity == SMALL


def test_pods_on_excluded_nodes_are_not_subtracted() -> None:
    nodes = [leaf_node("a", SMALL), leaf_node("b", SMALL, cordoned=True)]
    pods = [leaf_pod("x", "b", ONE), leaf_pod("y", "elsewhere", ONE)]
    assert of(nodes, pods).capacity == SMALL


def test_a_leaf_without_usable_nodes_shows_zero_of_each_resource() -> None:
    nodes = [leaf_node("a", GPU, ready="False"), leaf_node("b", SMALL, cordoned=True)]
    assert of(nodes).capacity == {"cpu": "0", "memory": "0", "pods": "0", "example.com/gpu": "0"}


@pytest.mark.parametrize(("excludes", "cpu"), [(False, "12"), (True, "8")])
def test_tainted_nodes_count_unless_they_are_excluded(excludes: bool, cpu: str) -> None:
    nodes = [leaf_node("a", SMALL, taints=("NoSchedule",)), leaf_node("b", GPU)]
    assert of(nodes, exclude_tainted=excludes).capacity["cpu"] == cpu


def test_pods_that_have_not_started_count_unless_only_running_ones_do() -> None:
    pods = [leaf_pod("x", "a", ONE), leaf_pod("y", "a", ONE, phase="Pending")]
    assert of([leaf_node("a", SMALL)], pods).capacity == {"cpu": "1", "memory": "6Gi", "pods": "8"}
    running = of([leaf_node("a", SMALL)], pods, count_pods=Counting.RUNNING)
    assert running.capacity == {"cpu": "2500m", "memory": "7Gi", "pods": "9"}


def test_resources_are_never_negative() -> None:
    pods = [leaf_pod(str(number), "a", {"cpu": "3", "memory": "1Gi"}) for number in range(11)]
    assert of([leaf_node("a", SMALL)], pods).capacity == {"cpu": "0", "memory": "0", "pods": "0"}


def test_a_resource_that_no_leaf_node_has_is_not_named_though_pods_ask_for_it() -> None:
    pods = [leaf_pod("x", "a", {"example.com/tpu": "1"})]
    assert of([leaf_node("a", SMALL)], pods).capacity == {"cpu": "4", "memory": "8Gi", "pods": "9"}


def test_pod_capacity_is_reduced_by_the_number_of_pods() -> None:
    pods = [leaf_pod("x", "a", {"pods": "7"})]
    assert of([leaf_node("a", SMALL)], pods).capacity["pods"] == "9"


def test_a_share_of_the_whole_is_kept_from_allocatable_alone() -> None:
    found = of([leaf_node("a", SMALL)], [leaf_pod("x", "a", ONE)], reserve_percent=25)
    assert found.capacity == {"cpu": "2500m", "memory": "7Gi", "pods": "9"}
    assert found.allocatable == {"cpu": "1500m", "memory": "5Gi", "pods": "6"}


def test_a_reservation_above_the_remainder_leaves_zero() -> None:
    found = of([leaf_node("a", SMALL)], [leaf_pod("x", "a", ONE)], reserve_percent=100)
    assert found.allocatable == {"cpu": "0", "memory": "0", "pods": "0"}
    assert found.capacity["cpu"] == "2500m"


def test_the_largest_block_is_that_of_a_single_node_for_each_resource() -> None:
    pods = [leaf_pod("x", "b", {"cpu": "5", "memory": "1Gi"})]
    found = of([leaf_node("a", SMALL), leaf_node("b", GPU)], pods, largest_free=True)
    assert found.largest == {"cpu": "4", "memory": "15Gi", "pods": "19", "example.com/gpu": "2"}


def test_pods_from_the_root_do_fill_the_node_they_are_on() -> None:
    pods = [leaf_pod("x", "a", {"cpu": "3"}, from_root=True), leaf_pod("y", "b", {"cpu": "2"}, from_root=True)]
    found = of([leaf_node("a", SMALL), leaf_node("b", SMALL)], pods, largest_free=True)
    assert found.capacity["cpu"] == "8"
    assert found.largest == {"cpu": "2", "memory": "8Gi", "pods": "9"}


def test_the_largest_block_of_an_overfull_node_or_of_no_node_is_nothing() -> None:
    pods = [leaf_pod("x", "a", {"cpu": "5"})]
    assert of([leaf_node("a", SMALL)], pods, largest_free=True).largest["cpu"] == "0"
    cordoned = of([leaf_node("a", SMALL, cordoned=True)], largest_free=True)
    assert cordoned.largest == {"cpu": "0", "memory": "0", "pods": "0"}


def test_a_node_that_cannot_be_read_is_left_out_and_named() -> None:
    found = of([leaf_node("a", SMALL), leaf_node("b", {"cpu": "8", "memory": "16 GB", "pods": "20"})])
    assert found.capacity == SMALL
    assert list(found.unreadable) == ["b"]
    assert found.unreadable["b"].startswith("status.allocatable.memory: '16 GB': ")


def test_a_node_whose_pods_cannot_be_counted_is_left_out_and_named() -> None:
    many = [leaf_pod(f"p{number}", "b", {f"example.com/r{number}": "1"}) for number in range(MOST_NAMES + 1)]
    found = of([leaf_node("a", SMALL), leaf_node("b", SMALL)], many)
    assert found.capacity == SMALL
    assert found.unreadable == {"b": "its pods have more than 1000 different or invalid requests"}


def test_a_pod_that_cannot_be_read_takes_its_place_and_is_named() -> None:
    pods = [leaf_pod("good", "a", ONE), leaf_pod("bad", "a", {"cpu": "one"}), leaf_pod("apart", "b", {"cpu": "one"})]
    found = of([leaf_node("a", SMALL), leaf_node("b", SMALL, cordoned=True)], pods)
    assert found.capacity == {"cpu": "2500m", "memory": "7Gi", "pods": "8"}
    assert found.unreadable_pods == ("ns/bad",)


TEXTS = {
    ("cpu", 2500 * MILLI): "2500m",
    ("cpu", 4000 * MILLI): "4",
    ("cpu", 4000 * NANO): "4k",
    ("cpu", MILLI + 1): "1m",
    ("memory", 2**30 * NANO): "1Gi",
    ("memory", 1536 * 2**20 * NANO): "1536Mi",
    ("memory", 1023 * NANO): "1023",
    ("memory", 1_000_000 * NANO): "1M",
    ("memory", NANO - 1): "0",
    ("ephemeral-storage", 10_000_004_950 * NANO): "10000004950",
    ("hugepages-2Mi", 2**22 * NANO): "4Mi",
    ("pods", 110 * NANO): "110",
    ("pods", 2048 * NANO): "2048",
    ("example.com/gpu", 0): "0",
}


@pytest.mark.parametrize(("name", "amount"), TEXTS.keys())
def test_an_amount_has_one_text_which_the_server_keeps(name: str, amount: int) -> None:
    text = text_of(name, amount)
    assert text == TEXTS[name, amount]
    assert canonical(text) == text


CHANGES = {
    "the same": ({"cpu": "1"}, {"cpu": "1"}, {}),
    "the same amount in another text": ({"cpu": "1000m", "memory": "1024Mi"}, {"cpu": "1", "memory": "1Gi"}, {}),
    "another amount": ({"cpu": "1", "pods": "5"}, {"cpu": "2", "pods": "5"}, {"cpu": "2"}),
    "one more": ({"cpu": "1"}, {"cpu": "1", "pods": "0"}, {"pods": "0"}),
    "one less": ({"cpu": "1", "pods": "0"}, {"cpu": "1"}, {"pods": None}),
    "something unreadable": ({"cpu": "lots"}, {"cpu": "1"}, {"cpu": "1"}),
    "nothing yet": ({}, {}, {}),
}


@pytest.mark.parametrize(("shown", "wanted", "patch"), CHANGES.values(), ids=CHANGES.keys())
def test_only_amounts_that_differ_are_written(
    shown: Mapping[str, str], wanted: Mapping[str, str], patch: Mapping[str, str | None]
) -> None:
    assert changes(shown, wanted) == patch
    assert differs(shown, wanted) is bool(patch)


def test_only_sums_are_read_for_any_number_of_pods() -> None:
    asked: list[str] = []
    full = reduce(add_usage, [leaf_pod(str(number), "a", {"cpu": "1m"}) for number in range(500)], NOTHING)

    def used(node: str) -> Usage:
        asked.append(node)
        return full

    found = free(
        [leaf_node("a", SMALL), leaf_node("b", SMALL), leaf_node("c", SMALL, cordoned=True)], used, ResourceOptions()
    )
    assert asked == ["a", "b"]
    assert found.capacity["cpu"] == "7"
