"""Resources of a mirrored node: what the leaf's scheduler could still place, updated with pods and nodes."""

from __future__ import annotations

import json

import pytest
from tests.builders.tree_env import is_allocatable, node_model, selector_model

from nodeyard.capabilities.clustertree import names

pytestmark = pytest.mark.usefixtures("tree_operator")


def container(cpu, name="main", **more):
    return {"name": name, "image": "none", "resources": {"requests": {"cpu": cpu}}, **more}


def test_pods_of_the_leaf_use_resources_until_they_finish_or_are_deleted(tree):
    n1 = tree.leaf.node("n1", cpu="4", memory="8Gi", pods="10")
    name = f"kosmos-{tree.cluster('east')}"
    tree.wait_for_allocatable(name, cpu="4", memory="8Gi", pods="10")

    bound = tree.leaf.pod("bound", n1, phase="Pending", cpu="500m", memory="1Gi")
    running = tree.leaf.pod("running", n1, cpu="1")
    tree.wait_for_allocatable(name, cpu="2500m", memory="7Gi", pods="8")

    tree.leaf.phase(running, "Succeeded")
    tree.wait_for_allocatable(name, cpu="3500m", memory="7Gi", pods="9")
    tree.leaf.remove_pod(bound)
    tree.wait_for_allocatable(name, cpu="4", memory="8Gi", pods="10")


def test_requests_are_those_that_the_scheduler_counts(tree):
    n1 = tree.leaf.node("n1", cpu="10")
    name = f"kosmos-{tree.cluster('east')}"
    tree.leaf.pod("init", n1, containers=[container("1")], more={"initContainers": [container("3", "setup")]})
    tree.wait_for_allocatable(name, cpu="7")

    sidecar = container("500m", "side", restartPolicy="Always")
    tree.leaf.pod("sidecar", n1, containers=[container("1")], more={"initContainers": [sidecar]})

    tree.wait_for_allocatable(name, cpu="5500m")


def test_pods_from_the_root_are_counted_by_the_root_alone(tree):
    n1 = tree.leaf.node("n1", cpu="4")
    east = tree.cluster("east", resources={"largestFree": True})
    name = f"kosmos-{east}"
    tree.wait_for_allocatable(name, cpu="4")

    tree.leaf.pod("ours", n1, labels={names.ROOT_POD: "true"}, cpu="3")
    tree.leaf.pod("theirs", n1, cpu="500m")

    tree.wait_for_allocatable(name, cpu="3500m")
    tree.wait_until(
        lambda: '"cpu":"500m"' in tree.annotation(name, names.LARGEST_FREE), "the block is what is really free"
    )


def test_used_resources_never_exceed_the_capacity(tree):
    n1 = tree.leaf.node("n1", cpu="1", pods="1")
    tree.leaf.pod("a", n1, cpu="900m")
    tree.leaf.pod("b", n1, cpu="900m")

    name = f"kosmos-{tree.cluster('east')}"

    tree.wait_for_allocatable(name, cpu="0", pods="0", memory="8Gi")


def test_leaf_nodes_count_while_they_are_ready_and_not_cordoned(tree):
    n1, n2 = tree.leaf.node("n1", cpu="1"), tree.leaf.node("n2", cpu="2")
    tree.leaf.pod("p", n2, cpu="500m")
    name = f"kosmos-{tree.cluster('east')}"
    tree.wait_for_allocatable(name, cpu="2500m")

    tree.leaf.patch(n2, {"spec": {"unschedulable": True}})
    tree.wait_for_allocatable(name, cpu="1")
    tree.leaf.turn(n1, "Unknown")
    tree.wait_for_allocatable(name, cpu="0", memory="0")
    tree.leaf.patch(n2, {"spec": {"unschedulable": None}})
    tree.wait_for_allocatable(name, cpu="1500m")
    tree.leaf.node("n3", cpu="8")
    tree.wait_for_allocatable(name, cpu="9500m")


def test_options_leave_tainted_nodes_out_count_as_kosmos_and_keep_a_share(tree):
    n1 = tree.leaf.node("n1", cpu="10")
    tree.leaf.node("n2", cpu="10", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    tree.leaf.pod("bound", n1, phase="Pending", cpu="1")
    tree.leaf.pod("running", n1, cpu="2")
    east = tree.cluster("east")
    name = f"kosmos-{east}"
    tree.wait_for_allocatable(name, cpu="17")

    tree.change(east, resources={"excludeTainted": True})
    tree.wait_for_allocatable(name, cpu="7")
    tree.change(east, resources={"excludeTainted": True, "countPods": "Running"})
    tree.wait_for_allocatable(name, cpu="8")
    tree.change(east, resources={"excludeTainted": True, "countPods": "Running", "reservePercent": 20})
    tree.wait_for_allocatable(name, cpu="6")
    assert is_allocatable(tree.get_node(name)["status"]["capacity"], {"cpu": "8"})


def test_the_largest_free_block_is_on_the_node_while_the_option_is_set(tree):
    n1 = tree.leaf.node("n1", cpu="8", more={"example.com/gpu": "1"})
    tree.leaf.node("n2", cpu="8", more={"example.com/gpu": "2"})
    tree.leaf.pod("p", n1, cpu="3")
    east = tree.cluster("east", resources={"largestFree": True})
    name = f"kosmos-{east}"
    tree.wait_for_allocatable(name, cpu="13")

    def largest():
        return json.loads(tree.annotation(name, names.LARGEST_FREE) or "{}")

    assert (largest()["cpu"], largest()["example.com/gpu"]) == ("8", "2")
    tree.leaf.patch(f"{tree.name}-n2", {"spec": {"unschedulable": True}})
    tree.wait_until(lambda: (largest()["cpu"], largest()["example.com/gpu"]) == ("5", "1"), "the block is smaller")
    tree.change(east, resources=None)
    tree.wait_until(lambda: largest() == {}, "it is not told any more")


def test_a_group_loses_only_resources_of_pods_on_its_own_nodes(tree):
    gpu = tree.leaf.node("gpu", cpu="8", labels={"pool": "gpu"})
    other = tree.leaf.node("other", cpu="8")
    tree.cluster("east", selector_model("gpu"), node_model(other))
    tree.leaf.pod("a", gpu, cpu="1")
    tree.leaf.pod("b", other, cpu="3")

    tree.wait_for_allocatable("kosmos-gpu-0", cpu="7")
    tree.wait_for_allocatable(other, cpu="5")


def test_irrelevant_changes_are_not_written(tree, tree_operator):
    n1 = tree.leaf.node("n1", cpu="4")
    east = tree.cluster("east")
    name = f"kosmos-{east}"
    tree.wait_for_allocatable(name, cpu="4")
    tree.wait_for_condition(east, "Ready", "True")
    before = written(tree_operator, east)

    tree.leaf.turn(n1, "True", heartbeat="2026-02-02T00:00:00Z")
    tree.leaf.patch(n1, {"metadata": {"annotations": {"somebody": "wrote"}}})
    tree.leaf.pod("unbound", "", phase="Pending", cpu="1")
    # The event that counts comes after all others, on the same watches.
    tree.leaf.pod("last", n1, phase="Pending", cpu="1")
    tree.wait_for_allocatable(name, cpu="3")

    tree.wait_until(lambda: written(tree_operator, east) > before, "the write is counted")
    assert written(tree_operator, east) == before + 1
    assert tree_operator.metric("nodeyard_leaf_lag_seconds_count", cluster=east) >= 1


def written(operator, cluster):
    return operator.metric("nodeyard_leaf_node_writes_total", cluster=cluster)
