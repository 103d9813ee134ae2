"""Kinds and key strings of Cluster API."""

from __future__ import annotations

from typing import Final

from nodeyard.sim.stage_format import Kind

GROUP: Final = "cluster.x-k8s.io"
BOOTSTRAP: Final = "bootstrap.cluster.x-k8s.io"
VERSION: Final = f"{GROUP}/v1beta2"

CLUSTER: Final = Kind(VERSION, "Cluster")
DEPLOYMENT: Final = Kind(VERSION, "MachineDeployment")
SET: Final = Kind(VERSION, "MachineSet")
MACHINE: Final = Kind(VERSION, "Machine")
CONTROL_PLANE: Final = Kind("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane")
CONFIG: Final = Kind(f"{BOOTSTRAP}/v1beta2", "KubeadmConfig")
NODE: Final = Kind("v1", "Node")
SECRET: Final = Kind("v1", "Secret")
POD: Final = Kind("v1", "Pod")

# labels
CLUSTER_NAME: Final = "cluster.x-k8s.io/cluster-name"
DEPLOYMENT_NAME: Final = "cluster.x-k8s.io/deployment-name"
SET_NAME: Final = "cluster.x-k8s.io/set-name"
TEMPLATE_HASH: Final = "machine-template-hash"
CONTROL_PLANE_LABEL: Final = "cluster.x-k8s.io/control-plane"
CONTROL_PLANE_NAME: Final = "cluster.x-k8s.io/control-plane-name"
DRAIN: Final = "cluster.x-k8s.io/drain"

# annotations
PAUSED: Final = "cluster.x-k8s.io/paused"
CLONED_FROM_NAME: Final = "cluster.x-k8s.io/cloned-from-name"
CLONED_FROM_KIND: Final = "cluster.x-k8s.io/cloned-from-groupkind"
EXCLUDE_DRAINING: Final = "machine.cluster.x-k8s.io/exclude-node-draining"
PRE_DRAIN_HOOK: Final = "pre-drain.delete.hook.machine.cluster.x-k8s.io"
PRE_TERMINATE_HOOK: Final = "pre-terminate.delete.hook.machine.cluster.x-k8s.io"
AUTOSCALER_MIN: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
AUTOSCALER_MAX: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
NODE_CLUSTER: Final = "cluster.x-k8s.io/cluster-name"
NODE_NAMESPACE: Final = "cluster.x-k8s.io/cluster-namespace"
NODE_MACHINE: Final = "cluster.x-k8s.io/machine"
NODE_OWNER_KIND: Final = "cluster.x-k8s.io/owner-kind"
NODE_OWNER_NAME: Final = "cluster.x-k8s.io/owner-name"
LABELS_FROM_MACHINE: Final = "cluster.x-k8s.io/labels-from-machine"

# finalizers
CLUSTER_FINALIZER: Final = "cluster.cluster.x-k8s.io"
DEPLOYMENT_FINALIZER: Final = "cluster.x-k8s.io/machinedeployment"
SET_FINALIZER: Final = "cluster.x-k8s.io/machineset"
MACHINE_FINALIZER: Final = "machine.cluster.x-k8s.io"
CONTROL_PLANE_FINALIZER: Final = "kubeadm.controlplane.cluster.x-k8s.io"

UNINITIALIZED: Final = "node.cluster.x-k8s.io/uninitialized"
CONTROL_PLANE_ROLE: Final = "node-role.kubernetes.io/control-plane"
SECRET_TYPE: Final = "cluster.x-k8s.io/secret"

# conditions
READY: Final = "Ready"
AVAILABLE: Final = "Available"
DELETING: Final = "Deleting"
PAUSED_CONDITION: Final = "Paused"

# marks
HELD: Final = "held"
"""A control plane that replaces no machine; see `World.hold_upgrade`."""


def synced_to_nodes(key: str) -> bool:
    """Return whether Cluster API syncs this label from the Machine to its Node; the kubelet sets all others."""
    domain, slash, _ = key.partition("/")
    if not slash:
        return False
    return domain == "node-role.kubernetes.io" or any(
        domain == managed or domain.endswith(f".{managed}")
        for managed in ("node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
    )
