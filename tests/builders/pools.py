"""Builders of LatticeClusters, pools, classes and LatticeServices, as JSON objects and as decoded types.

Each has two forms: `cluster_body(...)` is the object that a user applies, `cluster(...)` is the decoded struct as a
server returns it, with uid, generation and finalizer. Spec fields are given by their JSON names.

    cluster("prod", workerPools={"gpu": pool(2, labels={"tier": "gpu"}, taints=["nvidia.com/gpu:NoSchedule"])})
    cluster("prod", workers=3, poolDeletionPolicy="Force")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, LatticeService
from nodeyard.kube.json import Object

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KUBERNETES = "1.32.0"
DOCKER: Object = {"docker": {}}
AWS: Object = {"aws": {"region": "eu-central-1", "sshKeyName": "ops", "amiId": "ami-0123456789abcdef0"}}
PROXMOX: Object = {
    "proxmox": {
        "sourceNode": "pve1",
        "templateId": 9000,
        "ipv4Addresses": ["10.0.0.10-10.0.0.99"],
        "ipv4Gateway": "10.0.0.1",
        "controlPlaneEndpoint": "10.0.0.9",
        "dnsServers": ["10.0.0.1"],
    }
}
SEED_POOLS: Object = {
    "general": {
        "displayName": "General Purpose",
        "replicas": 3,
        "nodeClass": "medium",
        "labels": {"workload-type": "general"},
    },
    "gpu": {
        "displayName": "GPU Workers (A100)",
        "replicas": 2,
        "nodeClass": "gpu-large",
        "labels": {"workload-type": "gpu", "nvidia.com/gpu": "true"},
        "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
    },
    "highmem": {
        "displayName": "High Memory",
        "replicas": 1,
        "nodeClass": "memory-optimized",
        "labels": {"workload-type": "highmem"},
    },
}
"""The pools of the design's example."""

_NODES = ("controlPlane", "workers", "workerPools")


def taint(text: str) -> Object:
    """Parse a taint `key=value:Effect` or `key:Effect`."""
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def pool(replicas: int = 1, *, taints: Sequence[str] = (), **given: Any) -> Object:
    """Build a pool; taints are written as in kubectl."""
    return {"replicas": replicas, **given, **({"taints": list(map(taint, taints))} if taints else {})}


def cluster_body(
    name: str = "prod",
    *,
    config: Object = DOCKER,
    version: str = KUBERNETES,
    metadata: Object | None = None,
    **spec: Any,
) -> Object:
    """Build the object that a user applies; `controlPlane`, `workers` and `workerPools` go to spec.nodes."""
    nodes: Object = {"controlPlane": 1, **{each: spec.pop(each) for each in _NODES if each in spec}}
    provider = {"kubernetes": {"version": version}, "config": config, **spec.pop("provider", {})}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.CLUSTER_KIND,
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"provider": provider, "nodes": nodes, **spec},
    }


def cluster(name: str = "prod", *, status: Object | None = None, **given: Any) -> LatticeCluster:
    """Build a decoded LatticeCluster with the finalizer and the uid of its initialized Cluster."""
    body = cluster_body(name, **given)
    annotations = {names.CLUSTER_UID: f"uid-{name}", **body["metadata"].get("annotations", {})}
    found = {"finalizers": [names.FINALIZER], **_stored(name), **body["metadata"], "annotations": annotations}
    return msgspec.convert({**body, "metadata": found, "status": status or {}}, LatticeCluster)


def class_body(name: str = "medium", *, metadata: Object | None = None, **providers: Any) -> Object:
    """Build a class with these providers; docker with its defaults if none is given."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.CLASS_KIND,
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"providers": providers or {"docker": {}}},
    }


def node_class(name: str = "medium", **given: Any) -> LatticeNodeClass:
    body = class_body(name, **given)
    return msgspec.convert({**body, "metadata": {**_stored(name), **body["metadata"]}}, LatticeNodeClass)


def service_body(
    name: str = "web",
    selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Object] = (),
    *,
    namespace: str = "default",
    metadata: Object | None = None,
) -> Object:
    placement: Object = {}
    if selector:
        placement["nodeSelector"] = dict(selector)
    if tolerations:
        placement["tolerations"] = list(tolerations)
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.SERVICE_KIND,
        "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
        "spec": {"placement": placement},
    }


def service(name: str = "web", *args: Any, status: Object | None = None, **given: Any) -> LatticeService:
    body = service_body(name, *args, **given)
    found = {**_stored(name), **body["metadata"]}
    return msgspec.convert({**body, "metadata": found, "status": status or {}}, LatticeService)


def machine(name: str, deployment: str, *, node: str = "", **given: Any) -> Machine:
    """Build a Machine of a MachineDeployment; `metadata`, `spec` and `status` as in JSON."""
    labels = {names.DEPLOYMENT_NAME_LABEL: deployment, **given.get("metadata", {}).get("labels", {})}
    metadata = {**_stored(name), **given.get("metadata", {}), "labels": labels}
    status = {**({"nodeRef": {"name": node}} if node else {}), **given.get("status", {})}
    return msgspec.convert({"metadata": metadata, "spec": given.get("spec", {}), "status": status}, Machine)


def snapshot(of: LatticeCluster | None = None, *classes: LatticeNodeClass, **given: Any) -> PoolsSnapshot:
    """Build the snapshot of one cluster with the existing classes."""
    return PoolsSnapshot(of or cluster(), {each.metadata.name: each for each in classes}, **given)


def _stored(name: str) -> Object:
    """Add the metadata that the API server sets."""
    return {"name": name, "uid": f"uid-{name}", "generation": 1, "resourceVersion": "1"}
