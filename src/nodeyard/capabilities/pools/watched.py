"""Cluster API's kinds as they are watched: which, in which form, and how they are found again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.snapshot import Machine, MachineSet
from nodeyard.client.resources import SECRETS as ALL_SECRETS
from nodeyard.client.resources import Resource, untyped
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Secret

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
OLDER: Final = {"ProxmoxCluster": ("v1alpha1",), "ProxmoxMachineTemplate": ("v1alpha1",)}
"""Kinds that also come in an older version, of another shape."""
TEMPLATES: Final = (BOOTSTRAP_TEMPLATES, *MACHINE_TEMPLATES)


SECRETS: Final = ALL_SECRETS.decoded_as(Secret)


# how they are found

ANY: Final = "*"
"""What all that an index has at all is found by: those who look for it need not look through everything."""


def by_namespace(obj: Any) -> Iterable[str]:
    """Of any of them: the namespace, which is the cluster's."""
    return (obj["metadata"]["namespace"] if isinstance(obj, dict) else obj.metadata.namespace,)


def draining(deployment: Object) -> Iterable[str]:
    """Of a MachineDeployment whose pool is being drained: the cluster, and that there is one."""
    if names.DRAIN_STARTED not in (deployment["metadata"].get("annotations") or {}):
        return ()
    return (deployment.get("spec") or {}).get("clusterName", ""), ANY


def kubeconfigs(secret: Secret) -> Iterable[str]:
    """Of a Secret that is called as one with a kubeconfig: that it is."""
    return (ANY,) if secret.metadata.name.endswith(names.kubeconfig("")) else ()


def by_node(machine: Machine) -> Iterable[str]:
    return (machine.node,) if machine.node else ()


def cluster_of(namespace: str) -> str:
    """The LatticeCluster whose objects live in a namespace; empty where it is none of ours."""
    prefix = names.namespace("")
    return namespace.removeprefix(prefix) if namespace.startswith(prefix) else ""


def decode_kubeconfig(secret: Secret) -> bytes | None:
    """What stands under the key that Cluster API uses; None where it is not base64 or missing."""
    text = secret.data.get(names.KUBECONFIG_KEY)
    if text is None:
        return None
    try:
        return msgspec.convert(text, bytes)
    except msgspec.ValidationError:
        return None
