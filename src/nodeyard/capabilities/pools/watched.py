"""Watched kinds of Cluster API, and their index functions. The objects of a cluster are in namespace capi-<cluster>."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.machine_state import infrastructure_of
from nodeyard.capabilities.pools.snapshot import Machine, MachineSet
from nodeyard.capabilities.pools.types import LatticeCluster, resolved_pools
from nodeyard.client.resources import Resource, untyped
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Pod

CLUSTERS: Final = untyped(names.CAPI_GROUP, names.CAPI_VERSION, "clusters", "Cluster")
DEPLOYMENTS: Final = untyped(names.CAPI_GROUP, names.CAPI_VERSION, "machinedeployments", "MachineDeployment")
MACHINE_SETS: Final = untyped(names.CAPI_GROUP, names.CAPI_VERSION, "machinesets", "MachineSet").decoded_as(MachineSet)
MACHINES: Final = untyped(names.CAPI_GROUP, names.CAPI_VERSION, "machines", "Machine").decoded_as(Machine)
CONTROL_PLANES: Final = untyped(
    names.CONTROL_PLANE_GROUP, names.CAPI_VERSION, "kubeadmcontrolplanes", "KubeadmControlPlane"
)
BOOTSTRAP_TEMPLATES: Final = untyped(
    names.BOOTSTRAP_GROUP, names.CAPI_VERSION, "kubeadmconfigtemplates", "KubeadmConfigTemplate"
)


def _infrastructure(kind: str, version: str = names.CAPI_VERSION) -> Resource[Object]:
    return untyped(names.INFRASTRUCTURE_GROUP, version, f"{kind.lower()}s", kind)


INFRASTRUCTURE_CLUSTERS: Final = (
    _infrastructure("DevCluster"),
    _infrastructure("DockerCluster"),
    _infrastructure("AWSCluster"),
    _infrastructure("ProxmoxCluster", "v1alpha2"),
)
MACHINE_TEMPLATES: Final = (
    _infrastructure("DevMachineTemplate"),
    _infrastructure("DockerMachineTemplate"),
    _infrastructure("AWSMachineTemplate"),
    _infrastructure("ProxmoxMachineTemplate", "v1alpha2"),
)
FALLBACK_VERSIONS: Final = {"ProxmoxCluster": ("v1alpha1",), "ProxmoxMachineTemplate": ("v1alpha1",)}
"""Older served versions with a different schema, by kind."""
TEMPLATES: Final = (BOOTSTRAP_TEMPLATES, *MACHINE_TEMPLATES)


# indexers

ANY: Final = "*"
"""Index key that every indexed object has, to list them without a scan of the whole cache."""


def by_namespace(obj: Any) -> Iterable[str]:
    """Index an object by namespace: each cluster has its own."""
    return (obj["metadata"]["namespace"] if isinstance(obj, dict) else obj.metadata.namespace,)


def draining(deployment: Object) -> Iterable[str]:
    """Index a MachineDeployment that is being drained by its cluster, and under ANY."""
    if names.DRAIN_STARTED not in (deployment["metadata"].get("annotations") or {}):
        return ()
    return (deployment.get("spec") or {}).get("clusterName", ""), ANY


def class_group(node_class: str, deployment: Object) -> str:
    """Return the aggregate group of a class: class and template kind, because an edit affects one provider's entry."""
    kind, _name = infrastructure_of(deployment)
    return f"{node_class} {kind}"


def class_groups(deployment: Object) -> Iterable[str]:
    """Return the aggregate groups: all pools, pools of its class, and pools created from the same spec of the class."""
    if names.POOL not in meta.labels(deployment):
        return ()
    recorded = meta.annotations(deployment)
    if names.NODE_CLASS not in recorded:
        return (ANY,)
    group = class_group(recorded[names.NODE_CLASS], deployment)
    return ANY, group, f"{group} {recorded.get(names.CLASS_INPUTS, '')}"


def by_node(machine: Machine) -> Iterable[str]:
    return (machine.node,) if machine.node else ()


def pods_by_node(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def classes_of(cluster: LatticeCluster) -> Iterable[str]:
    """Return the classes that the pools of a cluster use."""
    return {pool.node_class for pool in resolved_pools(cluster.spec.nodes).values() if pool.node_class}


def cluster_of(namespace: str) -> str:
    """Return the LatticeCluster of a capi-<cluster> namespace; empty for any other namespace."""
    prefix = names.namespace("")
    return namespace.removeprefix(prefix) if namespace.startswith(prefix) else ""
