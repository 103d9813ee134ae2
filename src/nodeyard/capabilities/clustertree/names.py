"""All key strings of clustertree: those of Kosmos, which are its interface, and Nodeyard's own."""

from __future__ import annotations

from typing import Final

CAPABILITY: Final = "clustertree"
MANAGER: Final = "nodeyard-clustertree"

# Kosmos
GROUP: Final = "kosmos.io"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "Cluster"
PLURAL: Final = "clusters"

FINALIZER: Final = "kosmos.io/cluster-manager"
CLUSTER_ROLE: Final = "kosmos.io/cluster-role"
"""Annotation of a Cluster; `root` marks the root itself, which is never mirrored."""
ROOT: Final = "root"
NODE_MODE: Final = "leafNodeMode"
"""Annotation of a mirrored node: the mode of its leaf model."""
ROOT_POD: Final = "kosmos-io/pod"
"""Label of a leaf's pod that was created from the root; the root's scheduler already counts it."""
ROLE_LABEL: Final = "kubernetes.io/role"
ROLE: Final = "agent"
OLD_OS_LABEL: Final = "beta.kubernetes.io/os"
TRUE: Final = "true"
NODE_PREFIX: Final = "kosmos-"
PROVIDER: Final = "kosmos://"

# Nodeyard's keys on a mirrored node
MODEL: Final = "nodeyard.dev/leaf-model"
"""Annotation: the leaf model that the node mirrors. A model keeps its node when the list changes."""
MIRRORED_LABELS: Final = "nodeyard.dev/mirrored-labels"
"""Annotation: label keys set in addition to the fixed ones, comma-separated; they are removed when no longer wanted."""
MIRRORED_TAINTS: Final = "nodeyard.dev/mirrored-taints"
"""Annotation: taints set in addition to the fixed one, as `key:effect`, comma-separated."""
MIRRORED_CONDITIONS: Final = "nodeyard.dev/mirrored-conditions"
"""Annotation: condition types copied from the leaf in addition to the usual five, comma-separated."""
CORDONED_BY: Final = "nodeyard.dev/cordoned-by"
"""Annotation: the node is cordoned because the leaf node is. Only such a cordon is removed again."""
LEAF_CORDON: Final = "leaf"
WRITTEN_AT: Final = "nodeyard.dev/written-at"
"""Annotation: time of the last write of its resources, a UTC timestamp with milliseconds."""
LARGEST_FREE: Final = "nodeyard.dev/largest-free"
"""Annotation: the largest free amount of each resource on a single leaf node, as JSON."""

# Nodeyard's keys on a Cluster
LEAF: Final = "nodeyard.dev/leaf"
"""Annotation: uid of the leaf that the Cluster mirrors, and since when."""
REJECTED_SINCE: Final = "nodeyard.dev/credentials-rejected-since"
"""Annotation: time since which the leaf rejects the credentials."""

# Nodeyard's keys elsewhere
LEAF_KUBECONFIG: Final = "nodeyard.dev/leaf-kubeconfig"
"""Label of a Secret whose kubeconfig a Cluster may use; no other Secret is read."""
KUBECONFIG_KEY: Final = "kubeconfig"
"""Default key of the kubeconfig in such a Secret."""

KUBECONFIGS: Final = "kubeconfigs"
"""Grant to list Secrets with kubeconfigs, in the namespaces that hold them."""

# indexes and aggregates of the cache
BY_CLUSTER: Final = "cluster"
"""Root nodes by the Cluster they mirror."""
BY_NODE: Final = "node"
"""Root pods by the node they are bound to."""
BY_SECRET: Final = "secret"
"""Clusters by the Secret that holds their kubeconfig, as `namespace/name`."""
BY_WANTED: Final = "wanted"
"""Clusters by the names of the nodes that their models need."""
BY_LEAF: Final = "leaf"
"""Clusters by the uid of the leaf that they mirror."""
USED: Final = "used"
"""Aggregate over a leaf's pods: their requests by leaf node."""


def whole_node(cluster: str) -> str:
    """Name of the node that mirrors a whole cluster."""
    return f"{NODE_PREFIX}{cluster}"


def party_node(leaf_node_name: str, index: int) -> str:
    """Name of the node that mirrors a label-selected group; truncated as in Kosmos."""
    return f"{NODE_PREFIX}{leaf_node_name}-{index}"[:63]


def provider_id(cluster: str, node: str) -> str:
    return f"{PROVIDER}{cluster}/{node}"


def leaf_health(cluster: str) -> str:
    """Name under which the lease loop publishes the health of a leaf."""
    return f"leaf/{cluster}"
