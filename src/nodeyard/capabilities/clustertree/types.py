"""The Cluster kind: Kosmos' fields, and Nodeyard's own, which are all opt-in.

Decoding is lenient on purpose: an object that a laxer schema accepted must still decode, so that it gets a condition.
`planning.models` reports invalid values.
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
    """Pods of the leaf whose requests are subtracted."""

    SCHEDULED = "Scheduled"
    RUNNING = "Running"


class NodeSelector(PlainStruct, frozen=True):
    node_name: Annotated[str, Meta(description="Leaf node that is mirrored as one node of the root.")] = ""
    label_selector: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Leaf nodes that are mirrored together as one node of the root; an empty selector selects all."
        ),
    ] = None


class LeafModel(NullableStruct, frozen=True):
    leaf_node_name: Annotated[
        str, Meta(description="Name part of the node; with a labelSelector the node is named kosmos-NAME-INDEX.")
    ] = ""
    labels: Annotated[
        StringMap, Meta(description="Labels of the node in the root; they override mirrored labels.")
    ] = {}
    taints: Annotated[
        Slice[Taint], Meta(description="Taints of the node in the root, in addition to kosmos.io/node=true:NoSchedule.")
    ] = ()
    node_selector: Annotated[
        NodeSelector, Meta(description="Leaf nodes to mirror: one by name, a group by labels, or all if empty.")
    ] = NodeSelector()


class ResourceOptions(NullableStruct, frozen=True):
    exclude_tainted: Annotated[
        bool, Meta(description="Excludes leaf nodes with a taint of effect NoSchedule or NoExecute.")
    ] = False
    count_pods: Annotated[
        Counting,
        Meta(
            description="Pods whose requests are subtracted. Scheduled: all bound pods that are not finished, as the "
            "leaf's scheduler counts. Running: only pods in phase Running, as Kosmos counts."
        ),
    ] = Counting.SCHEDULED
    reserve_percent: Annotated[
        int, Meta(ge=0, le=100, description="Percentage of the leaf's allocatable that is withheld from the root.")
    ] = 0
    largest_free: Annotated[
        bool,
        Meta(
            description="Writes the largest amount of each resource that is free on a single leaf node to the "
            "annotation nodeyard.dev/largest-free of the node."
        ),
    ] = False


class ClusterTreeOptions(NullableStruct, frozen=True):
    enable: Annotated[bool, Meta(description="Mirrors the leaf's nodes; false removes the mirrored nodes.")] = True
    leaf_models: Annotated[
        Slice[LeafModel],
        Meta(description="Nodes of the root that mirror the leaf; one node for the whole leaf if empty."),
    ] = ()
    resources: Annotated[ResourceOptions, Meta(description="Rules for counting free resources.")] = ResourceOptions()
    credential_grace: Annotated[
        str,
        Meta(
            description="Duration, such as 10m or 1h30m, for which leases are still renewed while the leaf responds "
            "but rejects the credentials; 10m if omitted. After that the leaf counts as unreachable."
        ),
    ] = ""


class SecretReference(PlainStruct, frozen=True):
    namespace: Annotated[str, Meta(description="Namespace of the Secret; nodeyard-system if empty.")] = ""
    name: Annotated[str, Meta(description="Name of the Secret.")] = ""
    key: Annotated[str, Meta(description="Key of the kubeconfig in the Secret; kubeconfig if empty.")] = ""


class ClusterSpec(PlainStruct, frozen=True):
    """The fields of other Kosmos components are served and preserved, but have no effect here."""

    kubeconfig: Annotated[
        str,
        Meta(
            description="Kubeconfig of the leaf, base64. Prefer kubeconfigSecretRef: this field is readable in clear."
        ),
    ] = msgspec.field(default="", name="kubeconfig")
    kubeconfig_secret_ref: Annotated[
        SecretReference | None,
        Meta(
            description="Secret with the leaf's kubeconfig; it needs the label nodeyard.dev/leaf-kubeconfig=true. "
            "Takes precedence over kubeconfig."
        ),
    ] = None
    namespace: Annotated[str, Meta(description="Namespace of Kosmos' own components in the leaf.")] = ""
    image_repository: Annotated[str, Meta(description="Image repository of Kosmos' own components.")] = ""
    cluster_link_options: Annotated[
        Any, Meta(description="Options of Kosmos' ClusterLink, which connects the leaf's network.")
    ] = None
    cluster_tree_options: Annotated[
        ClusterTreeOptions, Meta(description="Options for mirroring the leaf in the root.")
    ] = ClusterTreeOptions()


class LeafNodeItem(PlainStruct, frozen=True):
    leaf_node_name: Annotated[str, Meta(description="Node of the root that mirrors this leaf.")] = ""


class ClusterTreeStatus(NullableStruct, frozen=True):
    leaf_node_items: Annotated[Slice[LeafNodeItem], Meta(description="Nodes of the root that mirror this leaf.")] = ()


class ClusterStatus(NullableStruct, frozen=True):
    cluster_link_status: Annotated[Any, Meta(description="Network of the leaf, as ClusterLink reports it.")] = None
    cluster_tree_status: Annotated[ClusterTreeStatus, Meta(description="Mirrored nodes of the leaf.")] = (
        ClusterTreeStatus()
    )
    observed_generation: Annotated[int, Meta(description="Generation of the spec that this status reflects.")] = 0
    nodes: Annotated[int, Meta(description="Number of nodes of the root that mirror the leaf.")] = 0
    leaf_nodes: Annotated[int, Meta(description="Number of nodes of the leaf.")] = 0
    unacknowledged_pods: Annotated[
        int, Meta(description="Number of pods bound to its nodes and not acknowledged for a minute.")
    ] = 0
    last_contact_time: Annotated[
        str, Meta(description="Time of the leaf's last response; set only while the leaf is unreachable.")
    ] = ""
    leases_renewed_time: Annotated[
        str,
        Meta(description="Time when the leases of all its nodes were last renewed, updated once a minute."),
    ] = ""
    conditions: Annotated[
        Slice[Condition], Meta(description="Conditions Reachable, ResourcesSynced, LeasesRenewed and Ready.")
    ] = ()


class Cluster(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ClusterSpec, Meta(description="Desired mirroring of the leaf cluster.")] = ClusterSpec()
    status: Annotated[ClusterStatus, Meta(description="Observed state of the leaf and its mirrored nodes.")] = (
        ClusterStatus()
    )

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_paused(self) -> bool:
        return self.metadata.annotations.get(PAUSED) == names.TRUE

    @property
    def is_root(self) -> bool:
        """The Cluster represents the cluster that the operator runs in."""
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
