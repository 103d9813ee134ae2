"""Objects that a cluster has once: its namespace, the Cluster and the control plane."""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.generation.bootstrap import control_plane_config
from nodeyard.capabilities.pools.planning.generation.kinds import choose, reference
from nodeyard.capabilities.pools.planning.generation.metadata import drop_empty, object_metadata
from nodeyard.capabilities.pools.snapshot import Served
from nodeyard.capabilities.pools.types import LatticeCluster
from nodeyard.kube.json import Object

POD_RANGES: Final = ("192.168.0.0/16",)
SERVICE_RANGES: Final = ("10.128.0.0/12",)
_CONTROL_PLANE: Final = "KubeadmControlPlane"


def namespace(lc: LatticeCluster) -> Object:
    """Return the namespace of the cluster's objects."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": names.namespace(lc.name), "labels": {names.CLUSTER: lc.name}},
    }


def cluster(lc: LatticeCluster, served: Served) -> Object:
    """Return the Cluster. Raises NotServed and InvalidSpec, because it references a kind of the provider."""
    networking = lc.spec.networking
    return {
        "apiVersion": names.CAPI_API_VERSION,
        "kind": "Cluster",
        "metadata": object_metadata(lc, lc.name),
        "spec": {
            "clusterNetwork": drop_empty(
                pods={"cidrBlocks": list(networking.pod_cidrs or POD_RANGES)},
                services={"cidrBlocks": list(networking.service_cidrs or SERVICE_RANGES)},
                serviceDomain=networking.service_domain or None,
            ),
            "controlPlaneRef": reference(names.CONTROL_PLANE_GROUP, _CONTROL_PLANE, names.control_plane(lc.name)),
            "infrastructureRef": reference(names.INFRASTRUCTURE_GROUP, choose(lc, served).family.cluster, lc.name),
        },
    }


def control_plane(lc: LatticeCluster, template_name: str, template_kind: str, version: str) -> Object:
    """Return the KubeadmControlPlane at a version: an upgrade reaches it before the pools."""
    template_ref = reference(names.INFRASTRUCTURE_GROUP, template_kind, template_name)
    return {
        "apiVersion": names.CONTROL_PLANE_API_VERSION,
        "kind": _CONTROL_PLANE,
        "metadata": object_metadata(lc, names.control_plane(lc.name)),
        "spec": drop_empty(
            replicas=lc.spec.nodes.control_plane,
            version=with_v(version),
            machineTemplate={
                "metadata": {"labels": {names.CLUSTER: lc.name}},
                "spec": {"infrastructureRef": template_ref},
            },
            kubeadmConfigSpec=control_plane_config(lc),
        ),
    }


def with_v(version: str) -> str:
    """Return the version with exactly one leading v, as Cluster API requires."""
    return f"v{version.lstrip('v')}"
