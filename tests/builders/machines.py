"""Builders of Cluster API v1beta2 clusters and MachineDeployments, as an operator writes them.

env = Clusters(machines)
env.cluster("c")
env.pool("c", "gpu", replicas=2, node_labels={"pool": "gpu"}, taints=[...])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodeyard.testing.machines import CLUSTER_API, CONTROL_PLANES, MachineWorld, namespace
from nodeyard.testing.session import MERGE

CORE = "cluster.x-k8s.io"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
VERSION = "v1.35.0"


def reference(group: str, kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": group, "kind": kind, "name": name}


def obj(group: str, kind: str, cluster: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace(cluster), "labels": {f"{CORE}/cluster-name": cluster}}
    return {"apiVersion": f"{group}/v1beta2", "kind": kind, "metadata": metadata, "spec": dict(spec)}


def deployment(cluster: str, pool: str, replicas: int, **chosen: Any) -> dict[str, Any]:
    name = f"{cluster}-pool-{pool}"
    own = {f"{CORE}/cluster-name": cluster, f"{CORE}/deployment-name": name}
    spec = {
        "clusterName": cluster,
        "version": chosen.get("version", VERSION),
        "bootstrap": {"configRef": reference(BOOTSTRAP, "KubeadmConfigTemplate", name)},
        "infrastructureRef": reference(INFRASTRUCTURE, "DevMachineTemplate", name),
    }
    if deletion := chosen.get("deletion"):
        spec["deletion"] = deletion
    template = {
        "metadata": {"labels": {**own, **chosen.get("labels", {})}, "annotations": chosen.get("annotations", {})},
        "spec": spec,
    }
    told = {"clusterName": cluster, "replicas": replicas, "selector": {"matchLabels": own}, "template": template}
    return obj(CORE, "MachineDeployment", cluster, name, told)


class Clusters:
    """Writes the Cluster API objects of a test."""

    def __init__(self, machines: MachineWorld) -> None:
        self._rest = machines.rest
        self._machines = machines

    def cluster(self, name: str, *, replicas: int = 1, version: str = VERSION) -> None:
        """Create a cluster with an initialized control plane."""
        self._rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace(name)}})
        plane = f"{name}-control-plane"
        self.infrastructure_template(name, plane)
        self._rest.create(obj(INFRASTRUCTURE, "DevCluster", name, name, {"backend": {"docker": {}}}))
        template = {"spec": {"infrastructureRef": reference(INFRASTRUCTURE, "DevMachineTemplate", plane)}}
        told = {"replicas": replicas, "version": version, "machineTemplate": template}
        self._rest.create(obj(CONTROL_PLANE, "KubeadmControlPlane", name, plane, told))
        spec = {
            "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
            "controlPlaneRef": reference(CONTROL_PLANE, "KubeadmControlPlane", plane),
            "infrastructureRef": reference(INFRASTRUCTURE, "DevCluster", name),
        }
        self._rest.create(obj(CORE, "Cluster", name, name, spec))
        self._machines.wait_until_initialized(name)

    def pool(
        self,
        cluster: str,
        pool: str,
        replicas: int,
        *,
        node_labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        **chosen: Any,
    ) -> str:
        """Create a pool's MachineDeployment with its templates; return its name without waiting."""
        name = f"{cluster}-pool-{pool}"
        self.infrastructure_template(cluster, name)
        self.config_template(cluster, name, node_labels or {"pool": pool}, taints)
        self._rest.create(deployment(cluster, pool, replicas, **chosen))
        return name

    def infrastructure_template(self, cluster: str, name: str) -> None:
        spec = {"template": {"spec": {"backend": {"docker": {}}}}}
        self._rest.create(obj(INFRASTRUCTURE, "DevMachineTemplate", cluster, name, spec))

    def config_template(
        self, cluster: str, name: str, labels: Mapping[str, str], taints: Sequence[Mapping[str, str]] = ()
    ) -> None:
        value = ",".join(f"{key}={text}" for key, text in labels.items())
        registration: dict[str, Any] = {"kubeletExtraArgs": [{"name": "node-labels", "value": value}]}
        if taints:
            registration["taints"] = list(taints)
        spec = {"template": {"spec": {"joinConfiguration": {"nodeRegistration": registration}}}}
        self._rest.create(obj(BOOTSTRAP, "KubeadmConfigTemplate", cluster, name, spec))

    def change(self, cluster: str, name: str, spec: Mapping[str, Any]) -> None:
        """Merge-patch the spec of a MachineDeployment."""
        path = f"{CLUSTER_API}/namespaces/{namespace(cluster)}/machinedeployments/{name}"
        self._rest.call("PATCH", path, {"spec": dict(spec)}, content_type=MERGE)

    def retemplate(self, cluster: str, name: str, spec: Mapping[str, Any]) -> None:
        """Merge-patch spec.template.spec of a MachineDeployment."""
        self.change(cluster, name, {"template": {"spec": dict(spec)}})

    def relabel(self, cluster: str, name: str, **metadata: Mapping[str, str | None]) -> None:
        """Merge-patch spec.template.metadata of a MachineDeployment."""
        self.change(cluster, name, {"template": {"metadata": metadata}})

    def delete(self, cluster: str, name: str) -> None:
        self._rest.call("DELETE", f"{CLUSTER_API}/namespaces/{namespace(cluster)}/machinedeployments/{name}")

    def pause(self, cluster: str, *, is_on: bool) -> None:
        path = f"{CLUSTER_API}/namespaces/{namespace(cluster)}/clusters/{cluster}"
        self._rest.call("PATCH", path, {"spec": {"paused": is_on or None}}, content_type=MERGE)

    def upgrade(self, cluster: str, version: str) -> None:
        path = f"{CONTROL_PLANES}/namespaces/{namespace(cluster)}/kubeadmcontrolplanes/{cluster}-control-plane"
        self._rest.call("PATCH", path, {"spec": {"version": version}}, content_type=MERGE)

    def control_plane(self, cluster: str) -> dict[str, Any]:
        path = f"{CONTROL_PLANES}/namespaces/{namespace(cluster)}/kubeadmcontrolplanes/{cluster}-control-plane"
        found: dict[str, Any] = self._rest.get(path)
        return found
