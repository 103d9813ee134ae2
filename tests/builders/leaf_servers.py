"""The API server of a leaf cluster for the tests of clustertree, with its nodes, pods and leases."""

from __future__ import annotations

from typing import Any

from nodeyard.kube.names import LEASE_NAMESPACE
from nodeyard.testing.rest import Rest, RestError
from nodeyard.testing.session import MERGE

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"


class Leaf:
    """The API server of one leaf, and its objects."""

    def __init__(self, server: Any, prefix: str) -> None:
        self.server = server
        self.rest: Rest = server.rest
        self._prefix = prefix
        self._made: list[str] = []

    def node(
        self,
        word: str,
        *,
        cpu: str = "4",
        memory: str = "8Gi",
        pods: str = "110",
        ready: str = "True",
        more: dict[str, str] | None = None,
        taints: list[dict[str, str]] | None = None,
        unschedulable: bool = False,
        labels: dict[str, str] | None = None,
        addresses: list[dict[str, str]] | None = None,
        name: str = "",
    ) -> str:
        """Make the word unique for this test, unless it is a full name."""
        name = name or f"{self._prefix}-{word}"
        has = {"cpu": cpu, "memory": memory, "pods": pods, **(more or {})}
        info = dict.fromkeys(_INFO, "x") | {
            "kubeletVersion": "v1.35.0",
            "architecture": "arm64",
            "operatingSystem": "linux",
        }
        self.rest.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/arch": "arm64", **(labels or {})}},
                "spec": {"taints": taints or [], "unschedulable": unschedulable},
                "status": {
                    "capacity": has,
                    "allocatable": has,
                    "conditions": [ready_condition(ready)],
                    "addresses": addresses or [{"type": "InternalIP", "address": "10.1.2.3"}],
                    "nodeInfo": info,
                },
            }
        )
        self._made.append(f"{NODES}/{name}")
        # Admission adds the taint not-ready to a new node, and no controller runs here to remove it.
        self.patch(name, {"spec": {"taints": taints or None}})
        return name

    def turn(self, name: str, ready: str, heartbeat: str = "2026-01-01T00:00:00Z") -> None:
        self._status(f"{NODES}/{name}", {"conditions": [{**ready_condition(ready), "lastHeartbeatTime": heartbeat}]})

    def patch(self, name: str, body: dict[str, Any]) -> None:
        self.rest.call("PATCH", f"{NODES}/{name}", body, content_type=MERGE)

    def remove(self, name: str) -> None:
        self.rest.call("DELETE", f"{NODES}/{name}")

    def pod(
        self,
        word: str,
        node: str,
        *,
        phase: str = "Running",
        labels: dict[str, str] | None = None,
        containers: list[dict[str, Any]] | None = None,
        more: dict[str, Any] | None = None,
        **requests: str,
    ) -> str:
        """Create a bound pod in a phase; keywords are requests of its only container, unless containers are given."""
        name = f"{self._prefix}-{word}"
        self.rest.create(pod_object(name, node, containers or [container(requests)], labels, more))
        self._made.append(f"{PODS}/{name}")
        if phase != "Pending":
            self.phase(name, phase)
        return name

    def phase(self, pod: str, phase: str) -> None:
        self._status(f"{PODS}/{pod}", {"phase": phase})

    def remove_pod(self, pod: str) -> None:
        self.rest.call("DELETE", f"{PODS}/{pod}?gracePeriodSeconds=0")

    def lease(self, node: str, renewed: str) -> None:
        metadata = {"name": node, "namespace": LEASE_NAMESPACE}
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": renewed}
        self.rest.replace_or_create(
            {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
        )
        self._made.append(f"{LEASES}/{node}")

    def close(self) -> None:
        for path in dict.fromkeys(self._made):
            delete(self.rest, f"{path}?gracePeriodSeconds=0" if "/pods/" in path else path)

    def _status(self, path: str, status: dict[str, Any]) -> None:
        self.rest.call("PATCH", f"{path}/status", {"status": status}, content_type=MERGE)


# the wire

_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeProxyVersion",
    "operatingSystem",
)  # fmt: skip


def ready_condition(status: str) -> dict[str, str]:
    return {
        "type": "Ready",
        "status": status,
        "reason": "KubeletReady" if status == "True" else "KubeletNotReady",
        "message": "as the kubelet says",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    }


def container(requests: dict[str, str]) -> dict[str, Any]:
    return {"name": "main", "image": "none", "resources": {"requests": requests}}


def pod_object(
    name: str,
    node: str,
    containers: list[dict[str, Any]],
    labels: dict[str, str] | None,
    more: dict[str, Any] | None,
) -> dict[str, Any]:
    spec = {
        **({"nodeName": node} if node else {}),
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": containers,
        **(more or {}),
    }
    metadata = {"name": name, "namespace": "default", "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def delete(rest: Rest, path: str) -> None:
    try:
        rest.call("DELETE", path)
    except RestError as error:
        if error.status != 404:
            raise
