"""What may influence the decision about one Cluster, frozen.

    root:   the Cluster, those before it that mirror the same leaf, the nodes that mirror it or stand in their way, the
            pods that are bound to them
    leaf:   its nodes and, as running sums, what its pods request on each; its node leases
    line:   whether the leaf answers, as the lease loop finds out round by round (`liveness`)

Nodes are trimmed to what is decided by or mirrored. Of a leaf that has never been listed nothing is known, and nothing
about its nodes is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from nodeyard.capabilities.clustertree.liveness import Finding
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.capabilities.clustertree.usage import NOTHING, Usage
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
    """A node of the leaf, or one of the root."""

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
    """The kubeconfig, where it comes from, and what is wrong with it."""

    is_given: bool = False
    error: str = ""
    """Why it cannot be used: it does not parse, it would run a program or read a file of ours, it is not there."""
    is_missing: bool = False
    """It is to come from a Secret that is not there, or that does not carry the label."""
    content: bytes = field(default=b"", repr=False)
    """What it says, for those who connect by it; no plan, status or log ever shows it."""


@dataclass(frozen=True)
class Leaf:
    """The leaf as far as it is known."""

    is_synced: bool = False
    """Its nodes and pods have been listed, now or before contact was lost."""
    uid: str = ""
    """Which cluster it is; empty where it does not say."""
    is_connected: bool = False
    connected_at: datetime | None = None
    """When contact was last made."""
    error: str = ""
    """Why there is no contact."""
    denied: str = ""
    """A right that we lack in it, also where what was listed before it was taken away is still known."""
    version: str = ""
    """Of its API server, as v1.36.4."""
    nodes: Mapping[str, TreeNode] = field(default_factory=dict)
    """By name, in order."""
    used: Mapping[str, Usage] = field(default_factory=dict)
    """By leaf node: what its pods take away."""
    leases: Mapping[str, Lease] = field(default_factory=dict)
    """By leaf node, of those that are mirrored one to one; None known is no reason to call a node silent."""
    is_leased: bool = True
    """Whether leases are heard of as they are renewed; otherwise what is known of them grows old by itself."""
    finding: Finding | None = None
    """What the lease loop last found; None before its first round, and where none runs."""

    def usage(self, node: str) -> Usage:
        return self.used.get(node, NOTHING)


@dataclass(frozen=True)
class BoundPod:
    """A pod of the root that is bound to one of the nodes and that nobody has taken up yet."""

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
    """The nodes of the root that say they mirror this Cluster, by name, in order."""
    strangers: Mapping[str, TreeNode] = field(default_factory=dict)
    """Nodes of the root that have a name which a model of this Cluster asks for, and are not its."""
    waiting: Sequence[BoundPod] = ()
    """By namespace and name."""
    elders: tuple[Cluster, ...] = ()
    """Other Clusters that mirror the same leaf and came first, the first first."""
