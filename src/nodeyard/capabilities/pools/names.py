"""Names of pools: labels, annotations, finalizers, field managers and kinds of Lattice and Cluster API."""

from __future__ import annotations

from typing import Final

CAPABILITY: Final = "pools"

# Lattice
GROUP: Final = "lattice.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
CLUSTER_KIND: Final = "LatticeCluster"
CLUSTER_PLURAL: Final = "latticeclusters"
CLASS_KIND: Final = "LatticeNodeClass"
CLASS_PLURAL: Final = "latticenodeclasses"
SERVICE_KIND: Final = "LatticeService"
SERVICE_PLURAL: Final = "latticeservices"

POOL: Final = "lattice.dev/pool"
"""Label of every object of a pool, including its nodes: the pool's id."""
CLUSTER: Final = "lattice.dev/cluster"
"""Label of every object of a LatticeCluster, except nodes: its name."""
NODE_CLASS: Final = "lattice.dev/node-class"
"""Annotation of a template and of a MachineDeployment: its LatticeNodeClass."""
CLASS_INPUTS: Final = "lattice.dev/class-inputs"
"""Annotation of a MachineDeployment: a hash of its class spec. A different hash means that the class was edited."""
INPUTS: Final = "lattice.dev/inputs"
"""Annotation of a template: a hash of the user's input. Equal inputs keep a template even if defaults changed."""
DRAIN_STARTED: Final = "lattice.dev/drain-started"
"""Annotation of a MachineDeployment whose pool is being drained: the start time."""
MARKED: Final = "lattice.dev/marked-for-deletion"
"""Annotation of a MachineDeployment that is removed with Orphan or Force: the policy and the original settings."""
CORDONED_BY: Final = "lattice.dev/cordoned-by"
"""Annotation of a node that a drain cordoned: cluster/pool. Only such a node is uncordoned again."""
ORPHAN_ON_DELETE: Final = "lattice.dev/orphan-on-delete"
"""Annotation of a LatticeCluster: its deletion keeps the Cluster and all other objects."""
CLUSTER_UID: Final = "lattice.dev/cluster-uid"
"""Annotation of a LatticeCluster: the uid of its initialized Cluster, which is never created a second time."""
FINALIZER: Final = "lattice.dev/cluster"
TRUE: Final = "true"

MANAGER: Final = "nodeyard-pools"
"""The field manager of every field except replicas."""
REPLICAS_MANAGER: Final = "nodeyard-pools-replicas"
"""The field manager of MachineDeployment replicas, so that an apply of the other fields leaves replicas alone."""
MOVER: Final = "clusterctl"
"""The field manager of objects that `clusterctl move` created."""

DEFAULT_POOL: Final = "default"
"""The pool id of `spec.nodes.workers`."""

# Cluster API
CAPI_GROUP: Final = "cluster.x-k8s.io"
BOOTSTRAP_GROUP: Final = "bootstrap.cluster.x-k8s.io"
CONTROL_PLANE_GROUP: Final = "controlplane.cluster.x-k8s.io"
INFRASTRUCTURE_GROUP: Final = "infrastructure.cluster.x-k8s.io"
CAPI_VERSION: Final = "v1beta2"
CAPI_API_VERSION: Final = f"{CAPI_GROUP}/{CAPI_VERSION}"
BOOTSTRAP_API_VERSION: Final = f"{BOOTSTRAP_GROUP}/{CAPI_VERSION}"
CONTROL_PLANE_API_VERSION: Final = f"{CONTROL_PLANE_GROUP}/{CAPI_VERSION}"

CLUSTER_NAME_LABEL: Final = "cluster.x-k8s.io/cluster-name"
DEPLOYMENT_NAME_LABEL: Final = "cluster.x-k8s.io/deployment-name"
CONTROL_PLANE_LABEL: Final = "cluster.x-k8s.io/control-plane"
PAUSED_ANNOTATION: Final = "cluster.x-k8s.io/paused"
AUTOSCALER_MIN: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size"
AUTOSCALER_MAX: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
# node properties for scaling from zero
CAPACITY_CPU: Final = "capacity.cluster-autoscaler.kubernetes.io/cpu"
CAPACITY_MEMORY: Final = "capacity.cluster-autoscaler.kubernetes.io/memory"
CAPACITY_DISK: Final = "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk"
CAPACITY_LABELS: Final = "capacity.cluster-autoscaler.kubernetes.io/labels"
CAPACITY_TAINTS: Final = "capacity.cluster-autoscaler.kubernetes.io/taints"
EXCLUDE_DRAINING: Final = "machine.cluster.x-k8s.io/exclude-node-draining"
EXCLUDE_VOLUME_WAIT: Final = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
"""Also written with a hyphen."""
UNINITIALIZED_TAINT: Final = "node.cluster.x-k8s.io/uninitialized"
OUTDATED_TAINT: Final = "node.cluster.x-k8s.io/outdated-revision"
KUBECONFIG_KEY: Final = "value"
"""Key of the kubeconfig in its Secret."""
KUBECONFIGS: Final = "kubeconfigs"
"""Name of the RBAC grant to read kubeconfig Secrets in cluster namespaces."""

# cache indexes
BY_NAMESPACE: Final = "namespace"
DRAINING: Final = "draining"
"""MachineDeployments that are being drained, by cluster."""
BY_NODE: Final = "node"
"""Pods by spec.nodeName, Machines by status.nodeRef."""
BY_CLASS: Final = "class"
"""LatticeClusters by the classes they use."""

CLASS_NODES: Final = "nodes of classes"
"""Aggregate that counts nodes by the class of their MachineDeployment."""

SERVICES_KEY: Final = "services"
"""Workqueue key of all LatticeServices: they are matched together."""
CLASSES_KEY: Final = "classes"
"""Workqueue key of all LatticeNodeClasses: they are reconciled together."""


def namespace(cluster: str) -> str:
    """Return the namespace of a cluster's Cluster API objects."""
    return f"capi-{cluster}"


def deployment(cluster: str, pool: str) -> str:
    """Return the name of a pool's MachineDeployment."""
    return f"{cluster}-pool-{pool}"


def legacy_deployment(cluster: str) -> str:
    """Return the name of the MachineDeployment that Lattice used before pools."""
    return f"{cluster}-md-0"


def control_plane(cluster: str) -> str:
    return f"{cluster}-control-plane"


def kubeconfig(cluster: str) -> str:
    """Return the name of the kubeconfig Secret of a workload cluster."""
    return f"{cluster}-kubeconfig"


def cluster_key(cluster: str) -> str:
    """Return the workqueue key of a LatticeCluster."""
    return f"cluster/{cluster}"
