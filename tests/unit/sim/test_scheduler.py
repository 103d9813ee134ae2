"""Pods are bound to nodes that match and have room."""

import pytest

from nodeyard.process.clock import EPOCH, VirtualClock
from nodeyard.sim.nodes import NodeShape, node
from nodeyard.sim.scheduler import NODE, POD, Scheduler


@pytest.fixture
def scheduler():
    return Scheduler(None, VirtualClock(), lambda *_mark: None)


def add(scheduler, name, **options):
    obj = node(name, EPOCH, **options)
    scheduler.observe(NODE, obj, True)
    return obj


def pod(name="p", cpu="1", **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"containers": [container], **spec}}


def on(node, obj, phase="Running"):
    return {**obj, "spec": {**obj["spec"], "nodeName": node}, "status": {"phase": phase}}


def test_a_pod_goes_to_the_emptiest_node(scheduler):
    add(scheduler, "a")
    add(scheduler, "b")
    scheduler.observe(POD, on("a", pod("x", "8")), True)
    assert scheduler.choose(pod()) == "b"


def test_an_unschedulable_pod_is_not_bound(scheduler):
    add(scheduler, "a", shape=NodeShape(cpu=2))
    assert scheduler.choose(pod(cpu="3")) is None


def test_capacity_is_freed_when_a_pod_ends_or_is_deleted(scheduler):
    add(scheduler, "a", shape=NodeShape(cpu=2))
    big = pod("x", "1500m")
    scheduler.observe(POD, on("a", big), True)
    assert scheduler.choose(pod()) is None
    scheduler.observe(POD, on("a", big, "Succeeded"), True)
    assert scheduler.choose(pod()) == "a"
    scheduler.observe(POD, on("a", big), True)
    scheduler.observe(POD, on("a", big), False)
    assert scheduler.choose(pod()) == "a"


def test_a_pod_seen_before_its_node_counts_all_the_same(scheduler):
    scheduler.observe(POD, on("a", pod("x", "1500m")), True)
    add(scheduler, "a", shape=NodeShape(cpu=2))
    assert scheduler.choose(pod()) is None


def test_taints_keep_off_pods_that_do_not_tolerate_them(scheduler):
    add(scheduler, "a", taints=[{"key": "gpu", "effect": "NoSchedule"}])
    assert scheduler.choose(pod()) is None
    assert scheduler.choose(pod(tolerations=[{"key": "gpu", "operator": "Exists"}])) == "a"


def test_a_cordoned_node_gets_no_new_pods(scheduler):
    obj = add(scheduler, "a")
    scheduler.observe(NODE, {**obj, "spec": {"unschedulable": True}}, True)
    assert scheduler.choose(pod()) is None


def test_node_selector_and_required_affinity_choose(scheduler):
    add(scheduler, "a", zone="z1")
    add(scheduler, "b", zone="z2")
    zone = "topology.kubernetes.io/zone"
    assert scheduler.choose(pod(nodeSelector={zone: "z2"})) == "b"
    terms = [{"matchExpressions": [{"key": zone, "operator": "In", "values": ["z1"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    assert scheduler.choose(pod(affinity={"nodeAffinity": required})) == "a"


def test_a_node_that_is_gone_is_not_chosen(scheduler):
    obj = add(scheduler, "a")
    scheduler.observe(NODE, obj, False)
    assert scheduler.choose(pod()) is None


def test_a_large_fleet_is_not_searched_to_its_end(scheduler, monkeypatch):
    for number in range(100):
        add(scheduler, f"n{number:03d}")
    chosen = {scheduler.choose(pod()) for _ in range(20)}
    assert len(chosen) > 5
