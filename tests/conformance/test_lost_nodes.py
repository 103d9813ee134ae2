"""A node whose lease is no longer renewed: Unknown after fifty seconds, and Ready again when it is renewed.

Both servers run with their default periods, so this file takes a minute, and all assertions are in one test.
"""

from __future__ import annotations

import time

import pytest

from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_micro
from nodeyard.process.clock import SystemClock
from nodeyard.testing.session import STRATEGIC

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
GRACE = 50.0
LATE = 40.0
"""The real controller checks every five seconds and may see a renewal five seconds late."""
RENEWAL = 8.0
UNREACHABLE = "node.kubernetes.io/unreachable"


class Kubelet:
    """Create a node that posts its status once and then only renews its lease."""

    def __init__(self, http, name: str, zone: str) -> None:
        self._http = http
        self.name = name
        self.path = f"/api/v1/nodes/{name}"
        self.renewed = time.monotonic()
        labels = {"topology.kubernetes.io/zone": zone}
        assert http.post("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}}).status == 201
        assert http.post(LEASES, {"metadata": {"name": name}, "spec": self._lease()}).status == 201
        self.report_ready()

    def _lease(self) -> dict:
        now = format_rfc3339_micro(SystemClock().now())
        return {"holderIdentity": self.name, "leaseDurationSeconds": 40, "renewTime": now}

    def renew(self) -> None:
        self.renewed = time.monotonic()
        assert self._http.patch(f"{LEASES}/{self.name}", {"spec": self._lease()}).status == 200

    def report_ready(self) -> None:
        now = format_rfc3339(SystemClock().now())
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "all well"}
        body = {"status": {"conditions": [{**ready, "lastHeartbeatTime": now, "lastTransitionTime": now}]}}
        assert self._http.patch(f"{self.path}/status", body, STRATEGIC).status == 200

    def conditions(self) -> dict[str, dict]:
        return {each["type"]: each for each in self._http.get(self.path).json["status"]["conditions"]}

    def taints(self) -> set[tuple[str, str]]:
        found = self._http.get(self.path).json["spec"].get("taints") or ()
        return {(taint["key"], taint["effect"]) for taint in found}

    def leave(self) -> None:
        self._http.delete(self.path)
        self._http.delete(f"{LEASES}/{self.name}")


@pytest.fixture
def kubelets(http, fresh):
    """Three nodes in a zone, one of which stops reporting: pods are not evicted if a whole zone is lost."""
    zone = fresh("zone")
    found = [Kubelet(http, fresh("beating"), zone) for _ in range(3)]
    yield found
    for kubelet in found:
        kubelet.leave()


def test_a_node_is_lost_fifty_seconds_after_its_last_lease(http, namespace, kubelets, eventually):
    silent, *others = kubelets
    for kubelet in kubelets:
        eventually(lambda kubelet=kubelet: kubelet.taints() == set(), "a ready node is free of taints")
    pod = run_pod(http, namespace, silent.name)
    silent.renew()

    def is_lost() -> bool:
        for kubelet in others:
            if time.monotonic() - kubelet.renewed > RENEWAL:
                kubelet.renew()
        return silent.conditions()["Ready"]["status"] == "Unknown"

    eventually(is_lost, "the node is lost", GRACE + LATE)
    assert time.monotonic() - silent.renewed >= GRACE

    ready, pressure = (silent.conditions()[kind] for kind in ("Ready", "MemoryPressure"))
    assert (ready["reason"], ready["message"]) == ("NodeStatusUnknown", "Kubelet stopped posting node status.")
    assert (pressure["status"], pressure["reason"]) == ("Unknown", "NodeStatusNeverUpdated")
    both = {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    eventually(lambda: silent.taints() == both, "the lost node is tainted")
    eventually(lambda: pod_is_ready(http, pod) == "False", "its pod does not count as ready")
    assert [kubelet.conditions()["Ready"]["status"] for kubelet in others] == ["True", "True"]

    silent.renew()
    silent.report_ready()
    eventually(lambda: silent.taints() == set(), "the node is back")
    http.delete(pod, {"gracePeriodSeconds": 0})


def run_pod(http, namespace: str, node: str) -> str:
    """Create a ready pod on a node; return its path."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    assert http.post(pods, {"metadata": {"name": "p"}, "spec": spec}).status == 201
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert http.patch(f"{pods}/p/status", {"status": status}, STRATEGIC).status == 200
    return f"{pods}/p"


def pod_is_ready(http, pod: str) -> str:
    conditions = http.get(pod).json["status"]["conditions"]
    return next(each["status"] for each in conditions if each["type"] == "Ready")
