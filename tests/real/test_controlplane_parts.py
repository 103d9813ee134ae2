"""Optional components beside the API server: controllers, the scheduler, KWOK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nodeyard.testing import ControlPlane
from nodeyard.testing.kubernetes_components import FAKE_NODE
from nodeyard.testing.rest import RestError
from nodeyard.testing.wait import until

pytestmark = pytest.mark.real

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "fake-1", "annotations": FAKE_NODE},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"containers": [{"name": "web", "image": "registry.k8s.io/pause"}]},
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(controllers=("namespace", "node-lifecycle-controller"), scheduler=True, kwok=True) as plane:
        yield plane


def condition(obj: dict[str, Any], kind: str) -> str | None:
    conditions = obj.get("status", {}).get("conditions", ())
    return next((each["status"] for each in conditions if each["type"] == kind), None)


def test_every_requested_component_runs(plane: ControlPlane) -> None:
    assert list(plane.components) == ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"]
    assert all(part.process.is_alive() for part in plane.components.values())


def test_the_namespace_controller_finishes_a_deletion(plane: ControlPlane) -> None:
    rest = plane.rest
    rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}})
    rest.call("DELETE", "/api/v1/namespaces/gone")
    until(lambda: rest.status("/api/v1/namespaces/gone") == 404, "the namespace is gone")


def test_kwok_makes_a_node_ready_and_its_lease_and_the_scheduler_fills_it(plane: ControlPlane) -> None:
    rest = plane.rest
    rest.create(NODE)
    until(lambda: condition(rest.get("/api/v1/nodes/fake-1"), "Ready") == "True", "the node is ready")
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/fake-1"
    until(lambda: rest.status(lease) == 200, "the node has a lease")
    rest.create(POD)
    pod = "/api/v1/namespaces/default/pods/web"
    until(lambda: rest.get(pod)["status"]["phase"] == "Running", "the pod runs")
    assert rest.get(pod)["spec"]["nodeName"] == "fake-1"


def test_service_accounts_are_wanted_only_where_something_makes_them() -> None:
    other = {**POD, "metadata": {"name": "other", "namespace": "default"}}
    with ControlPlane(controllers=("serviceaccount",)) as plane:
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        until(lambda: plane.rest.status(account) == 200, "the default service account is there")
        assert plane.rest.create(other)["spec"]["serviceAccountName"] == "default"
        plane.kill("kube-controller-manager")
        plane.rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bare"}})
        with pytest.raises(RestError, match='serviceaccount "default" not found'):
            plane.rest.create({**POD, "metadata": {"name": "other", "namespace": "bare"}})
