"""Every key string of clustertree, once: those of Kosmos, which are its interface, and ours."""

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
"""Annotation of a mirrored node: by which model it mirrors."""
ROOT_POD: Final = "kosmos-io/pod"
"""Label of a leaf's pod that was created from the root: the root's scheduler counts it already."""
ROLE_LABEL: Final = "kubernetes.io/role"
ROLE: Final = "agent"
OLD_OS_LABEL: Final = "beta.kubernetes.io/os"
TRUE: Final = "true"
NODE_PREFIX: Final = "kosmos-"
PROVIDER: Final = "kosmos://"

# ours, on a mirrored node
MODEL: Final = "nodeyard.dev/leaf-model"
"""Annotation: which leaf model of its Cluster the node mirrors: a model keeps its node when the list changes."""
MIRRORED_LABELS: Final = "nodeyard.dev/mirrored-labels"
"""Annotation: the label keys that we set beyond the fixed ones, so that they can be taken away; comma-separated."""
MIRRORED_TAINTS: Final = "nodeyard.dev/mirrored-taints"
"""Annotation: the taints that we set beyond the fixed one, as `key:effect`, comma-separated."""
MIRRORED_CONDITIONS: Final = "nodeyard.dev/mirrored-conditions"
"""Annotation: the conditions, beyond the usual five, that we copied from the leaf; comma-separated."""
CORDONED_BY: Final = "nodeyard.dev/cordoned-by"
"""Annotation: the node is cordoned because the leaf's node is. Only such a cordon is undone."""
LEAF_CORDON: Final = "leaf"
WRITTEN_AT: Final = "nodeyard.dev/written-at"
"""Annotation: when its resources were last written, in milliseconds of a UTC timestamp."""
LARGEST_FREE: Final = "nodeyard.dev/largest-free"
"""Annotation: the largest amount of each resource that is free on a single leaf node, as JSON."""

# ours, on a Cluster
LEAF: Final = "nodeyard.dev/leaf"
"""Annotation: the uid of the leaf that it mirrors, and since when."""
REJECTED_SINCE: Final = "nodeyard.dev/credentials-rejected-since"
"""Annotation: since when the leaf rejects our credentials."""

# ours, elsewhere
LEAF_KUBECONFIG: Final = "nodeyard.dev/leaf-kubeconfig"
"""Label that a Secret carries whose kubeconfig a Cluster may use: no other Secret is ever read."""
KUBECONFIG_KEY: Final = "kubeconfig"
"""Where the kubeconfig stands in such a Secret, unless said otherwise."""

# indexes and aggregates of the cache
BY_CLUSTER: Final = "cluster"
"""Root nodes by the Cluster they mirror."""
BY_NODE: Final = "node"
"""Root pods by the node they are bound to."""
BY_SECRET: Final = "secret"
"""Clusters by the Secret that holds their kubeconfig, as `namespace/name`."""
BY_WANTED: Final = "wanted"
"""Clusters by the names of the nodes that their models ask for."""
BY_LEAF: Final = "leaf"
"""Clusters by the uid of the leaf that they mirror."""
USED: Final = "used"
"""Aggregate over a leaf's pods: what those of one leaf node request."""


def whole_node(cluster: str) -> str:
    """The node that mirrors a whole cluster."""
    return f"{NODE_PREFIX}{cluster}"


def party_node(leaf_node_name: str, index: int) -> str:
    """The node that mirrors a label-selected group; cut as Kosmos cuts it."""
    return f"{NODE_PREFIX}{leaf_node_name}-{index}"[:63]


def provider_id(cluster: str, node: str) -> str:
    return f"{PROVIDER}{cluster}/{node}"


def finding(cluster: str) -> str:
    """What the lease loop publishes its finding about a leaf as."""
    return f"leaf/{cluster}"
