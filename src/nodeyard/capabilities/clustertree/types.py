"""Cluster as Kosmos defines it, and the fields that are ours, all of them opt-in.

Decoding is lenient on purpose: an object that a laxer schema let in must still decode, so that it gets a condition
instead of silence. What is wrong with one is said by `validity`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nodeyard.capabilities.clustertree import names
from nodeyard.kube.names import PAUSED
from nodeyard.kube.objects import Condition, NullableStruct, ObjectMeta, PlainStruct, Slice, StringMap, Taint


class Counting(StrEnum):
    """Which pods of the leaf take room away."""

    SCHEDULED = "Scheduled"
    RUNNING = "Running"


class NodeSelector(PlainStruct, frozen=True):
    node_name: Annotated[str, Meta(description="The leaf node that is mirrored as one node of the root.")] = ""
    label_selector: Annotated[
        dict[str, Any] | None,
        Meta(description="The leaf nodes that are mirrored together as one node of the root; an empty one means all."),
    ] = None


class LeafModel(NullableStruct, frozen=True):
    leaf_node_name: Annotated[
        str, Meta(description="What the node is called; with a labelSelector as kosmos-NAME-INDEX.")
    ] = ""
    labels: Annotated[StringMap, Meta(description="Labels of the node in the root, over those that are mirrored.")] = {}
    taints: Annotated[
        Slice[Taint], Meta(description="Taints of the node in the root, beside kosmos.io/node=true:NoSchedule.")
    ] = ()
    node_selector: Annotated[
        NodeSelector, Meta(description="Which leaf nodes it mirrors: one by name, a group by labels, or all if empty.")
    ] = NodeSelector()


class ResourceOptions(NullableStruct, frozen=True):
    exclude_tainted: Annotated[
        bool, Meta(description="Leave out leaf nodes with a taint of effect NoSchedule or NoExecute.")
    ] = False
    count_pods: Annotated[
        Counting,
        Meta(
            description="Scheduled: every pod that is bound and not finished takes room, as the leaf's scheduler "
            "counts. Running: only pods in phase Running, as Kosmos counts."
        ),
    ] = Counting.SCHEDULED
    reserve_percent: Annotated[
        int, Meta(ge=0, le=100, description="The share of the leaf's allocatable that is kept from the root.")
    ] = 0
    largest_free: Annotated[
        bool,
        Meta(
            description="Write the largest amount of each resource that is free on a single leaf node to the "
            "annotation nodeyard.dev/largest-free of the node."
        ),
    ] = False


class ClusterTreeOptions(NullableStruct, frozen=True):
    enable: Annotated[bool, Meta(description="Whether the cluster's nodes are mirrored; false removes them.")] = True
    leaf_models: Annotated[
        Slice[LeafModel], Meta(description="The nodes that the cluster appears as; one for all if empty.")
    ] = ()
    resources: Annotated[ResourceOptions, Meta(description="How free resources are counted.")] = ResourceOptions()
    credential_grace: Annotated[
        str,
        Meta(
            description="How long leases are still renewed while the leaf answers but rejects our credentials, such "
            "as 10m or 1h30m; 10m if omitted. After that the leaf counts as unreachable."
        ),
    ] = ""


class SecretReference(PlainStruct, frozen=True):
    namespace: Annotated[str, Meta(description="The Secret's namespace; nodeyard-system if empty.")] = ""
    name: Annotated[str, Meta(description="The Secret's name.")] = ""
    key: Annotated[str, Meta(description="Where the kubeconfig stands in it; kubeconfig if empty.")] = ""


class ClusterSpec(PlainStruct, frozen=True):
    """Fields for Kosmos' other parts are served and kept, and nothing here decides by them."""

    kubeconfig: Annotated[
        str, Meta(description="The leaf's kubeconfig, base64. Prefer kubeconfigSecretRef: this stands in clear.")
    ] = msgspec.field(default="", name="kubeconfig")
    kubeconfig_secret_ref: Annotated[
        SecretReference | None,
        Meta(
            description="The Secret that holds the leaf's kubeconfig, labelled nodeyard.dev/leaf-kubeconfig=true. "
            "It counts where both are given."
        ),
    ] = None
    namespace: Annotated[str, Meta(description="Where Kosmos' own parts live in the leaf.")] = ""
    image_repository: Annotated[str, Meta(description="Where Kosmos' own parts take their images from.")] = ""
    cluster_link_options: Annotated[Any, Meta(description="How Kosmos' ClusterLink joins the leaf's network.")] = None
    cluster_tree_options: Annotated[ClusterTreeOptions, Meta(description="How the cluster appears in the root.")] = (
        ClusterTreeOptions()
    )


class LeafNodeItem(PlainStruct, frozen=True):
    leaf_node_name: Annotated[str, Meta(description="A node of the root that mirrors this cluster.")] = ""


class ClusterTreeStatus(NullableStruct, frozen=True):
    leaf_node_items: Annotated[
        Slice[LeafNodeItem], Meta(description="The nodes of the root that mirror this cluster.")
    ] = ()


class ClusterStatus(NullableStruct, frozen=True):
    cluster_link_status: Annotated[Any, Meta(description="What ClusterLink found out about the leaf's network.")] = None
    cluster_tree_status: Annotated[ClusterTreeStatus, Meta(description="What the tree shows of the cluster.")] = (
        ClusterTreeStatus()
    )
    observed_generation: Annotated[int, Meta(description="The generation that this status is about.")] = 0
    nodes: Annotated[int, Meta(description="How many nodes of the root mirror it.")] = 0
    leaf_nodes: Annotated[int, Meta(description="How many nodes the leaf has.")] = 0
    unacknowledged_pods: Annotated[
        int, Meta(description="Pods bound to its nodes that nobody has acknowledged for a minute.")
    ] = 0
    last_contact_time: Annotated[
        str, Meta(description="When the leaf last answered, once it has stopped to; empty while it does.")
    ] = ""
    leases_renewed_time: Annotated[
        str,
        Meta(description="When the leases of all its nodes had last been renewed, brought up to date once a minute."),
    ] = ""
    conditions: Annotated[Slice[Condition], Meta(description="How it stands.")] = ()


class Cluster(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ClusterSpec, Meta(description="The leaf cluster.")] = ClusterSpec()
    status: Annotated[ClusterStatus, Meta(description="What is observed.")] = ClusterStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_paused(self) -> bool:
        return self.metadata.annotations.get(PAUSED) == names.TRUE

    @property
    def is_root(self) -> bool:
        """It stands for the cluster that we run in."""
        return self.metadata.annotations.get(names.CLUSTER_ROLE) == names.ROOT

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def tree(self) -> ClusterTreeOptions:
        return self.spec.cluster_tree_options


class ConditionType(StrEnum):
    REACHABLE = "Reachable"
    RESOURCES_SYNCED = "ResourcesSynced"
    LEASES_RENEWED = "LeasesRenewed"
    READY = "Ready"
