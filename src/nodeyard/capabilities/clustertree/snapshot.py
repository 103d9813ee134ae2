"""Frozen input of the plan of one Cluster.

    root      the Cluster, earlier Clusters of the same leaf, the nodes that mirror it or have a name that it needs, and
              the pods bound to them
    leaf      its nodes, the requests of its pods summed by node, and its node leases
    contact   the health of the leaf, published by the lease loop (`liveness`)

Nodes are trimmed to fields that are mirrored or decide something. Nothing is decided about the nodes of a leaf that has
never been listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from nodeyard.capabilities.clustertree.leases.liveness import LeafHealth
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.objects import Condition, Lease, NullableStruct, ObjectMeta, PlainStruct, Slice, StringMap, Taint


class NodeAddress(PlainStruct, frozen=True):
    type: str = ""
    address: str = ""


class NodeInfo(PlainStruct, frozen=True, omit_defaults=False):
    machine_id: str = msgspec.field(default="", name="machineID")
    system_uuid: str = msgspec.field(default="", name="systemUUID")
    boot_id: str = msgspec.field(default="", name="bootID")
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class TreeNodeSpec(NullableStruct, frozen=True):
    taints: Slice[Taint] = ()
    unschedulable: bool = False
    provider_id: str = msgspec.field(default="", name="providerID")


class TreeNodeStatus(NullableStruct, frozen=True):
    conditions: Slice[Condition] = ()
    addresses: Slice[NodeAddress] = ()
    capacity: StringMap = {}
    allocatable: StringMap = {}
    node_info: NodeInfo = NodeInfo()


class TreeNode(PlainStruct, frozen=True):
    """A node of the leaf or of the root."""

    metadata: ObjectMeta = ObjectMeta()
    spec: TreeNodeSpec = TreeNodeSpec()
    status: TreeNodeStatus = TreeNodeStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    def condition(self, type: str) -> Condition | None:
        return next((each for each in self.status.conditions if each.type == type), None)


@dataclass(frozen=True)
class Kubeconfig:
    """The kubeconfig of a Cluster and its error."""

    is_given: bool = False
    error: str = ""
    """Error that makes it unusable: it is missing or malformed, or would run a program or read a local file."""
    is_missing: bool = False
    """Its Secret does not exist, is not labelled, or cannot be listed."""
    content: bytes = field(default=b"", repr=False)
    """Raw content, for connecting only; no plan, status or log shows it."""


@dataclass(frozen=True)
class Usage:
    """Requests of the pods on one leaf node, without pods created from the root unless noted."""

    scheduled: Mapping[str, int] = field(default_factory=dict)
    """Requests of all bound and unfinished pods, by resource; without zeros."""
    scheduled_pods: int = 0
    running: Mapping[str, int] = field(default_factory=dict)
    """Requests of pods in phase Running only, as Kosmos counts."""
    running_pods: int = 0
    from_root: Mapping[str, int] = field(default_factory=dict)
    """Requests of pods created from the root. The root's scheduler counts them, but they occupy this node."""
    from_root_pods: int = 0
    unreadable: frozenset[str] = frozenset()
    """Pods, as `namespace/name`, with an invalid request; each counts as one pod without requests."""
    fault: str = ""
    """Set if the pods cannot be counted; the node is not counted then."""


NOTHING = Usage()


@dataclass(frozen=True)
class Leaf:
    """The leaf as last observed."""

    is_synced: bool = False
    """Its nodes and pods have been listed, now or before contact was lost."""
    uid: str = ""
    """Uid of its Namespace kube-system; empty if it is not readable."""
    is_other: bool = False
    """The server is not the recorded leaf, or no longer reveals its uid."""
    is_connected: bool = False
    connected_at: datetime | None = None
    """Time of the last successful connection."""
    error: str = ""
    """Reason why there is no contact."""
    is_too_large: bool = False
    """It was disconnected because it exceeded the cache limit of one cluster."""
    denied: str = ""
    """A missing permission in the leaf, also if objects listed earlier are still cached."""
    version: str = ""
    """Version of its API server, such as v1.36.4."""
    nodes: Mapping[str, TreeNode] = field(default_factory=dict)
    """By name, sorted."""
    used: Mapping[str, Usage] = field(default_factory=dict)
    """Requests of its pods, by leaf node."""
    leases: Mapping[str, Lease] = field(default_factory=dict)
    """By leaf node, only of nodes mirrored one to one. A missing lease does not make a node silent."""
    is_leased: bool = True
    """Lease renewals are being watched; otherwise cached leases grow stale."""
    health: LeafHealth | None = None
    """Health published by the lease loop; None before its first round, and where no loop runs."""

    def usage(self, node: str) -> Usage:
        return self.used.get(node, NOTHING)


@dataclass(frozen=True)
class BoundPod:
    """A pod of the root that is bound to a mirrored node and not acknowledged yet."""

    namespace: str
    name: str
    uid: str
    node: str
    since: datetime


@dataclass(frozen=True)
class TreeSnapshot:
    cluster: Cluster
    kubeconfig: Kubeconfig = Kubeconfig()
    leaf: Leaf = Leaf()
    mirrors: Mapping[str, TreeNode] = field(default_factory=dict)
    """Nodes of the root with the annotation of this Cluster, by name, sorted."""
    conflicting_nodes: Mapping[str, TreeNode] = field(default_factory=dict)
    """Nodes of the root that have a name which a model of this Cluster needs, and do not belong to it."""
    pending_pods: Sequence[BoundPod] = ()
    """Sorted by namespace and name."""
    earlier_clusters: tuple[Cluster, ...] = ()
    """Other Clusters of the same leaf that have precedence, first one first."""
