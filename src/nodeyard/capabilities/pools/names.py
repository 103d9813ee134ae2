"""Every key string of pools, once: Lattice's own and Cluster API's. Those of others are their interface."""

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
"""Label of everything that is made for a pool, its nodes included: the pool's id."""
CLUSTER: Final = "lattice.dev/cluster"
"""Label of everything that is made for a LatticeCluster, nodes excluded: its name."""
NODE_CLASS: Final = "lattice.dev/node-class"
"""Annotation of a template: the class it was made from."""
INPUTS: Final = "lattice.dev/inputs"
"""Annotation of a template: a hash of what the user asked for. Equal inputs keep a template whose defaults moved on."""
DRAIN_STARTED: Final = "lattice.dev/drain-started"
"""Annotation of a MachineDeployment whose pool is being removed: when its drain began."""
MARKED: Final = "lattice.dev/marked-for-deletion"
"""Annotation of a MachineDeployment that is to go undrained: by which policy, and what its template said before."""
CORDONED_BY: Final = "lattice.dev/cordoned-by"
"""Annotation of a node that we cordoned for a drain: the cluster and pool. Only such a cordon is undone."""
ORPHAN_ON_DELETE: Final = "lattice.dev/orphan-on-delete"
"""Annotation of a LatticeCluster: its deletion leaves the cluster alone."""
CLUSTER_UID: Final = "lattice.dev/cluster-uid"
"""Annotation of a LatticeCluster: the uid of its Cluster, once that has come up. It is never made a second time."""
FINALIZER: Final = "lattice.dev/cluster"
TRUE: Final = "true"

MANAGER: Final = "nodeyard-pools"
"""The field manager of everything but replicas."""
REPLICAS_MANAGER: Final = "nodeyard-pools-replicas"
"""The field manager of a MachineDeployment's replicas, so that the others can be applied without them."""
MOVER: Final = "clusterctl"
"""Who owns every field of an object that `clusterctl move` has made."""

DEFAULT_POOL: Final = "default"
"""The pool that `workers` stands for."""

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
# what a node of a pool without nodes would be like, for the cluster-autoscaler
CAPACITY_CPU: Final = "capacity.cluster-autoscaler.kubernetes.io/cpu"
CAPACITY_MEMORY: Final = "capacity.cluster-autoscaler.kubernetes.io/memory"
CAPACITY_DISK: Final = "capacity.cluster-autoscaler.kubernetes.io/ephemeral-disk"
CAPACITY_LABELS: Final = "capacity.cluster-autoscaler.kubernetes.io/labels"
CAPACITY_TAINTS: Final = "capacity.cluster-autoscaler.kubernetes.io/taints"
EXCLUDE_DRAINING: Final = "machine.cluster.x-k8s.io/exclude-node-draining"
EXCLUDE_VOLUME_WAIT: Final = "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach"
DRAIN_SKIP_LABEL: Final = "cluster.x-k8s.io/drain"
DRAIN_SKIP: Final = "skip"
DRAIN_WAIT: Final = "waitcompleted"
"""Also written with a hyphen."""
MACHINE_ANNOTATION: Final = "cluster.x-k8s.io/machine"
UNINITIALIZED_TAINT: Final = "node.cluster.x-k8s.io/uninitialized"
OUTDATED_TAINT: Final = "node.cluster.x-k8s.io/outdated-revision"
KUBECONFIG_KEY: Final = "value"
"""Where the kubeconfig stands in its Secret."""

# indexes of the cache
BY_CLUSTER: Final = "cluster"
"""Cluster API objects by the cluster they belong to."""
BY_NODE: Final = "node"
"""Pods by the node they are bound to, Machines by the node they are."""
BY_CLASS: Final = "class"
"""LatticeClusters by the classes they name."""

SERVICES_KEY: Final = "services"
"""All LatticeServices are matched together."""
CLASSES_KEY: Final = "classes"
"""All LatticeNodeClasses are looked at together."""


def namespace(cluster: str) -> str:
    """Where the Cluster API objects of a cluster live."""
    return f"capi-{cluster}"


def deployment(cluster: str, pool: str) -> str:
    """The MachineDeployment of a pool."""
    return f"{cluster}-pool-{pool}"


def legacy_deployment(cluster: str) -> str:
    """What the workers were called before there were pools."""
    return f"{cluster}-md-0"


def control_plane(cluster: str) -> str:
    return f"{cluster}-control-plane"


def kubeconfig(cluster: str) -> str:
    """The Secret that leads to the workload cluster."""
    return f"{cluster}-kubeconfig"


def cluster_key(cluster: str) -> str:
    """The key under which a LatticeCluster is planned."""
    return f"cluster/{cluster}"
