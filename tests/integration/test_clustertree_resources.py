"""Resources of a mirrored node: what the leaf's scheduler could still place, updated with pods and nodes."""

from __future__ import annotations

import json

import pytest
from tests.builders.woods import is_offered, one, party

from nodeyard.capabilities.clustertree import names

pytestmark = pytest.mark.usefixtures("tree_operator")


def container(cpu, name="main", **more):
    return {"name": name, "image": "none", "resources": {"requests": {"cpu": cpu}}, **more}


def test_pods_of_the_leaf_take_room_until_they_are_finished_or_gone(wood):
    n1 = wood.leaf.node("n1", cpu="4", memory="8Gi", pods="10")
    name = f"kosmos-{wood.cluster('east')}"
    wood.until_offers(name, cpu="4", memory="8Gi", pods="10")

    bound = wood.leaf.pod("bound", n1, phase="Pending", cpu="500m", memory="1Gi")
    running = wood.leaf.pod("running", n1, cpu="1")
    wood.until_offers(name, cpu="2500m", memory="7Gi", pods="8")

    wood.leaf.phase(running, "Succeeded")
    wood.until_offers(name, cpu="3500m", memory="7Gi", pods="9")
    wood.leaf.remove_pod(bound)
    wood.until_offers(name, cpu="4", memory="8Gi", pods="10")


def test_requests_are_those_that_the_scheduler_counts(wood):
    n1 = wood.leaf.node("n1", cpu="10")
    name = f"kosmos-{wood.cluster('east')}"
    wood.leaf.pod("init", n1, containers=[container("1")], more={"initContainers": [container("3", "setup")]})
    wood.until_offers(name, cpu="7")

    sidecar = container("500m", "side", restartPolicy="Always")
    wood.leaf.pod("sidecar", n1, containers=[container("1")], more={"initContainers": [sidecar]})

    wood.until_offers(name, cpu="5500m")


def test_pods_that_come_from_the_root_are_the_roots_to_count(wood):
    n1 = wood.leaf.node("n1", cpu="4")
    east = wood.cluster("east", resources={"largestFree": True})
    name = f"kosmos-{east}"
    wood.until_offers(name, cpu="4")

    wood.leaf.pod("ours", n1, labels={names.ROOT_POD: "true"}, cpu="3")
    wood.leaf.pod("theirs", n1, cpu="500m")

    wood.until_offers(name, cpu="3500m")
    wood.until(lambda: '"cpu":"500m"' in wood.annotation(name, names.LARGEST_FREE), "the block is what is really free")


def test_what_is_taken_is_never_more_than_there_is(wood):
    n1 = wood.leaf.node("n1", cpu="1", pods="1")
    wood.leaf.pod("a", n1, cpu="900m")
    wood.leaf.pod("b", n1, cpu="900m")

    name = f"kosmos-{wood.cluster('east')}"

    wood.until_offers(name, cpu="0", pods="0", memory="8Gi")


def test_leaf_nodes_count_while_they_are_ready_and_not_cordoned(wood):
    n1, n2 = wood.leaf.node("n1", cpu="1"), wood.leaf.node("n2", cpu="2")
    wood.leaf.pod("p", n2, cpu="500m")
    name = f"kosmos-{wood.cluster('east')}"
    wood.until_offers(name, cpu="2500m")

    wood.leaf.patch(n2, {"spec": {"unschedulable": True}})
    wood.until_offers(name, cpu="1")
    wood.leaf.turn(n1, "Unknown")
    wood.until_offers(name, cpu="0", memory="0")
    wood.leaf.patch(n2, {"spec": {"unschedulable": None}})
    wood.until_offers(name, cpu="1500m")
    wood.leaf.node("n3", cpu="8")
    wood.until_offers(name, cpu="9500m")


def test_options_leave_tainted_nodes_out_count_as_kosmos_and_keep_a_share(wood):
    n1 = wood.leaf.node("n1", cpu="10")
    wood.leaf.node("n2", cpu="10", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    wood.leaf.pod("bound", n1, phase="Pending", cpu="1")
    wood.leaf.pod("running", n1, cpu="2")
    east = wood.cluster("east")
    name = f"kosmos-{east}"
    wood.until_offers(name, cpu="17")

    wood.change(east, resources={"excludeTainted": True})
    wood.until_offers(name, cpu="7")
    wood.change(east, resources={"excludeTainted": True, "countPods": "Running"})
    wood.until_offers(name, cpu="8")
    wood.change(east, resources={"excludeTainted": True, "countPods": "Running", "reservePercent": 20})
    wood.until_offers(name, cpu="6")
    assert is_offered(wood.get(name)["status"]["capacity"], {"cpu": "8"})


def test_the_largest_free_block_stands_on_the_node_while_it_is_asked_for(wood):
    n1 = wood.leaf.node("n1", cpu="8", more={"example.com/gpu": "1"})
    wood.leaf.node("n2", cpu="8", more={"example.com/gpu": "2"})
    wood.leaf.pod("p", n1, cpu="3")
    east = wood.cluster("east", resources={"largestFree": True})
    name = f"kosmos-{east}"
    wood.until_offers(name, cpu="13")

    def largest():
        return json.loads(wood.annotation(name, names.LARGEST_FREE) or "{}")

    assert (largest()["cpu"], largest()["example.com/gpu"]) == ("8", "2")
    wood.leaf.patch(f"{wood.name}-n2", {"spec": {"unschedulable": True}})
    wood.until(lambda: (largest()["cpu"], largest()["example.com/gpu"]) == ("5", "1"), "the block is smaller")
    wood.change(east, resources=None)
    wood.until(lambda: largest() == {}, "it is not told any more")


def test_a_party_loses_only_what_the_pods_on_its_own_nodes_take(wood):
    gpu = wood.leaf.node("gpu", cpu="8", labels={"pool": "gpu"})
    other = wood.leaf.node("other", cpu="8")
    wood.cluster("east", party("gpu"), one(other))
    wood.leaf.pod("a", gpu, cpu="1")
    wood.leaf.pod("b", other, cpu="3")

    wood.until_offers("kosmos-gpu-0", cpu="7")
    wood.until_offers(other, cpu="5")


def test_what_changes_nothing_is_not_written(wood, tree_operator):
    n1 = wood.leaf.node("n1", cpu="4")
    east = wood.cluster("east")
    name = f"kosmos-{east}"
    wood.until_offers(name, cpu="4")
    wood.until_condition(east, "Ready", "True")
    before = written(tree_operator, east)

    wood.leaf.turn(n1, "True", heartbeat="2026-02-02T00:00:00Z")
    wood.leaf.patch(n1, {"metadata": {"annotations": {"somebody": "wrote"}}})
    wood.leaf.pod("unbound", "", phase="Pending", cpu="1")
    # What does count comes after all of that, on the same watches.
    wood.leaf.pod("last", n1, phase="Pending", cpu="1")
    wood.until_offers(name, cpu="3")

    wood.until(lambda: written(tree_operator, east) > before, "the write is counted")
    assert written(tree_operator, east) == before + 1
    assert tree_operator.metric("nodeyard_leaf_lag_seconds_count", cluster=east) >= 1


def written(operator, cluster):
    return operator.metric("nodeyard_leaf_node_writes_total", cluster=cluster)
