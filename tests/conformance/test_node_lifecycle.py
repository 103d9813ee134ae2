"""Nodes and their pods when conditions and taints change."""

from __future__ import annotations

import pytest

from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_micro
from nodeyard.process.clock import SystemClock
from nodeyard.testing.session import STRATEGIC

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
LATE = 50.0
"""The real controller checks every five seconds and taints one node of a zone every ten; none while it takes the zone
to be down, as when it checks before the other nodes have reported, and for ten seconds after that."""


@pytest.fixture
def node(http, fresh):
    """A node with a current heartbeat, beside two healthy ones: no pod is evicted if all nodes are down."""
    names = [fresh("lively") for _ in range(3)]
    for name in names:
        http.post("/api/v1/nodes", {"metadata": {"name": name}})
        lease = {
            "holderIdentity": name,
            "leaseDurationSeconds": 40,
            "renewTime": format_rfc3339_micro(SystemClock().now()),
        }
        http.post(LEASES, {"metadata": {"name": name}, "spec": lease})
    for name in names[1:]:
        report(http, f"/api/v1/nodes/{name}", "Ready", "True")
    yield f"/api/v1/nodes/{names[0]}"
    for name in names:
        http.delete(f"/api/v1/nodes/{name}")
        http.delete(f"{LEASES}/{name}")


def report(http, node: str, kind: str, status: str) -> None:
    now = format_rfc3339(SystemClock().now())
    condition = {
        "type": kind,
        "status": status,
        "reason": "Test",
        "message": "",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    assert http.patch(f"{node}/status", {"status": {"conditions": [condition]}}, STRATEGIC).status == 200


def taints(http, node: str) -> set[tuple[str, str]]:
    found = http.get(node).json["spec"].get("taints") or ()
    return {(taint["key"], taint["effect"]) for taint in found}


def test_a_node_that_becomes_ready_loses_its_taint(http, node, eventually):
    report(http, node, "Ready", "True")

    eventually(lambda: taints(http, node) == set(), "the node is free of taints")


def test_a_node_that_is_not_ready_is_tainted_twice(http, node, eventually):
    report(http, node, "Ready", "False")

    key = "node.kubernetes.io/not-ready"
    eventually(lambda: taints(http, node) == {(key, "NoSchedule"), (key, "NoExecute")}, "the node is tainted", LATE)


def test_a_cordoned_node_is_tainted_until_it_is_uncordoned(http, node, eventually):
    report(http, node, "Ready", "True")
    http.patch(node, {"spec": {"unschedulable": True}})
    key = ("node.kubernetes.io/unschedulable", "NoSchedule")
    eventually(lambda: key in taints(http, node), "the cordoned node is tainted")

    http.patch(node, {"spec": {"unschedulable": None}})

    eventually(lambda: key not in taints(http, node), "the taint goes with the cordon")


@pytest.mark.parametrize(
    ("condition", "key"),
    [
        ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
        ("DiskPressure", "node.kubernetes.io/disk-pressure"),
        ("PIDPressure", "node.kubernetes.io/pid-pressure"),
        ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
    ],
)
def test_pressure_taints_a_node(http, node, eventually, condition, key):
    report(http, node, "Ready", "True")
    report(http, node, condition, "True")

    eventually(lambda: (key, "NoSchedule") in taints(http, node), f"{condition} shows as a taint")


def test_taints_of_others_stay(http, node, eventually):
    http.patch(node, {"spec": {"taints": [{"key": "mine", "effect": "NoSchedule"}]}})
    report(http, node, "Ready", "False")
    eventually(lambda: ("node.kubernetes.io/not-ready", "NoExecute") in taints(http, node), "the node is tainted", LATE)

    report(http, node, "Ready", "True")

    eventually(lambda: taints(http, node) == {("mine", "NoSchedule")}, "only the foreign taint is left")


def test_pods_that_do_not_tolerate_a_taint_are_evicted(http, node, namespace, eventually):
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {
        "nodeName": node.rsplit("/", 1)[1],
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "i"}],
    }
    http.post(pods, {"metadata": {"name": "shy"}, "spec": spec})
    http.post(pods, {"metadata": {"name": "bold"}, "spec": {**spec, "tolerations": [{"operator": "Exists"}]}})

    http.patch(node, {"spec": {"taints": [{"key": "go", "effect": "NoExecute"}]}})

    eventually(lambda: is_leaving(http, f"{pods}/shy"), "the pod that does not tolerate it goes")
    assert not is_leaving(http, f"{pods}/bold")
    http.delete(f"{pods}/bold", {"gracePeriodSeconds": 0})


def is_leaving(http, path: str) -> bool:
    answer = http.get(path)
    return answer.status == 404 or "deletionTimestamp" in answer.json["metadata"]
