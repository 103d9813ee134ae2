"""Messages of the removal of a pool and the deletion of a LatticeCluster: actions, and what they wait for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.base import ClusterMessage, PoolMessage, with_error
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import DeletionPolicy, Pivot
from nodeyard.plan.layout import counted
from nodeyard.plan.message import Message, listed

_REMOVALS: Final[Mapping[DeletionPolicy, str]] = {
    DeletionPolicy.DRAIN: "cordoned and drained within their disruption budgets, then deleted",
    DeletionPolicy.ORPHAN: "deleted; Cluster API evicts their pods until poolDrainTimeout",
    DeletionPolicy.FORCE: "deleted without a drain",
}


def _fate(policy: DeletionPolicy) -> str:
    """Return what happens to the nodes of a removed pool."""
    return f"{_REMOVALS[policy]} (poolDeletionPolicy: {policy})"


# actions


class DrainStarted(PoolMessage, frozen=True):
    reason = Reason.DRAIN_STARTED
    nodes: int

    def text(self) -> str:
        verb = "is" if self.nodes == 1 else "are"
        return f"Starts removing pool {self.label}: {counted(self.nodes, 'node')} {verb} {_fate(DeletionPolicy.DRAIN)}"


class DrainOptionsSet(PoolMessage, frozen=True):
    reason = Reason.DRAIN_OPTIONS_SET
    policy: DeletionPolicy
    machines: int

    def text(self) -> str:
        machines, verb = counted(self.machines, "Machine"), "is" if self.machines == 1 else "are"
        return f"Sets drain options on {machines} of pool {self.label}, which {verb} {_fate(self.policy)}"


class DrainCancelled(PoolMessage, frozen=True):
    reason = Reason.DRAIN_CANCELLED

    def text(self) -> str:
        return f"Cancels the removal of pool {self.label}, which is in the spec again"


class NodeCordoned(PoolMessage, frozen=True):
    reason = Reason.NODE_CORDONED
    node: str

    def text(self) -> str:
        return f"Cordons node {self.node} of pool {self.label}"


class NodeUncordoned(PoolMessage, frozen=True):
    reason = Reason.NODE_UNCORDONED
    node: str

    def text(self) -> str:
        return f"Uncordons node {self.node} of pool {self.label}, which is in the spec again"


class PodEvicted(PoolMessage, frozen=True):
    reason = Reason.POD_EVICTED
    pod: str
    node: str

    def text(self) -> str:
        return f"Evicts pod {self.pod} from node {self.node} of pool {self.label}"


class PoolDeleted(PoolMessage, frozen=True):
    reason = Reason.POOL_DELETED

    def text(self) -> str:
        return f"Deletes pool {self.label} with its Machines"


class ClusterDeleted(ClusterMessage, frozen=True):
    reason = Reason.CLUSTER_DELETED

    def text(self) -> str:
        return f"Deletes the Cluster of {self.cluster} with all its Machines"


class NamespaceDeleted(ClusterMessage, frozen=True):
    reason = Reason.NAMESPACE_DELETED

    def text(self) -> str:
        return f"Deletes the namespace of {self.cluster}"


class FinalizerRemoved(ClusterMessage, frozen=True):
    reason = Reason.FINALIZER_REMOVED
    is_orphaned: bool = msgspec.field(name="orphaned", default=False)
    """True if all other objects stay."""
    kept: tuple[str, ...] = ()
    """Objects of other clusters, because of which the namespace stays."""

    def text(self) -> str:
        base = f"Removes finalizer {names.FINALIZER} from {self.cluster}"
        if self.is_orphaned:
            return f"{base}; its Cluster and all other objects stay"
        return f"{base}; its namespace stays, because it contains {listed(self.kept)}" if self.kept else base


# waits and refusals of a removed pool


class PodOnNode(msgspec.Struct, frozen=True):
    pod: str
    """The pod as namespace/name."""
    node: str

    def __str__(self) -> str:
        return f"{self.pod} on {self.node}"


class Undrained(PoolMessage, frozen=True, kw_only=True):
    """Base of messages about a pool that is not drained yet."""

    pods: int = 0
    """The number of pods that block the drain."""
    nodes: int = 0
    """The number of nodes that they run on."""
    blocking_pods: tuple[PodOnNode, ...] = ()
    """The first of these pods."""


class Draining(Undrained, frozen=True):
    reason = Reason.DRAINING

    def text(self) -> str:
        return f"Draining pool {self.label}: {counted(self.pods, 'pod')} left on {counted(self.nodes, 'node')}"


class DrainTimeout(Undrained, frozen=True):
    reason = Reason.DRAIN_TIMEOUT
    seconds: int

    def text(self) -> str:
        return (
            f"Pool {self.label} is not drained after {self.seconds} s: {listed(self.blocking_pods) or 'pods remain'}. "
            "Its Machines are kept and evictions are retried"
        )


class PodsUnknown(PoolMessage, frozen=True):
    reason = Reason.PODS_UNKNOWN

    def text(self) -> str:
        return f"Waiting for the pod list of the nodes of pool {self.label}: its informers are not synced"


class WorkloadUnreachable(PoolMessage, frozen=True):
    reason = Reason.WORKLOAD_UNREACHABLE
    error: str

    def text(self) -> str:
        return f"The workload cluster of pool {self.label} is unreachable: {self.error}"


class DrainOptionsPending(PoolMessage, frozen=True):
    reason = Reason.DRAIN_OPTIONS_PENDING
    missing: int
    """The number of Machines without the drain options."""
    names: tuple[str, ...]
    """The first of these Machines."""
    machines: int

    def text(self) -> str:
        left = self.missing - len(self.names)
        more = f" and {left} more" if left > 0 else ""
        return (
            f"Waiting for Cluster API to copy the drain options to {self.missing} of {self.machines} Machines of pool "
            f"{self.label}: {', '.join(self.names)}{more}"
        )


class MachinesUnseen(PoolMessage, frozen=True):
    reason = Reason.MACHINES_UNSEEN
    replicas: int
    machines: int

    def text(self) -> str:
        return (
            f"Pool {self.label} reports {self.replicas} Machines but the cache has {self.machines}: it is deleted once "
            "all are in the cache"
        )


class DeploymentDeleting(PoolMessage, frozen=True):
    reason = Reason.DEPLOYMENT_DELETING
    machines: int
    """The number of Machines left."""

    def text(self) -> str:
        left = f"; {counted(self.machines, 'Machine')} left" if self.machines else ""
        return f"The MachineDeployment of pool {self.label} is being deleted{left}"


class DeploymentPaused(PoolMessage, frozen=True):
    reason = Reason.PAUSED

    def text(self) -> str:
        return f"The MachineDeployment of pool {self.label} is paused: Cluster API leaves its Machines as they are"


class OrphanDeletes(Message, frozen=True):
    reason = Reason.ORPHAN_DELETES
    pool: str = ""
    """The id of the pool; empty for any pool."""
    machines: int = 0
    """The number of its Machines; 0 if it is not known."""

    def text(self) -> str:
        pool = f"pool {self.pool}" if self.pool else "a removed pool"
        machines = counted(self.machines, "Machine") if self.machines else "Machines"
        return (
            f"poolDeletionPolicy Orphan still deletes the {machines} of {pool}: Cluster API cannot keep them. Their "
            "pods are rescheduled"
        )


class AllPoolsRemoved(ClusterMessage, frozen=True):
    reason = Reason.ALL_POOLS_REMOVED

    def text(self) -> str:
        return f"spec.nodes of {self.cluster} has no pools: all its workers are removed"


class PodAwaited(Message, frozen=True):
    reason = Reason.POD_AWAITED
    node: str
    error: str = ""
    """The API server's last answer to an eviction, such as the PodDisruptionBudget."""

    def text(self) -> str:
        return with_error(f"The drain of node {self.node} is waiting for this pod", self.error)


# waits and refusals of a deletion


class ClusterDeleting(ClusterMessage, frozen=True):
    reason = Reason.CLUSTER_DELETING
    deployments: int = 0
    """The number of MachineDeployments left."""
    machines: int = 0
    """The number of Machines left."""

    def text(self) -> str:
        left = [
            counted(number, noun)
            for number, noun in ((self.deployments, "MachineDeployment"), (self.machines, "Machine"))
            if number
        ]
        suffix = f"; {' and '.join(left)} left" if left else ""
        return f"The Cluster of {self.cluster} is being deleted{suffix}"


class NamespaceDeleting(ClusterMessage, frozen=True):
    reason = Reason.NAMESPACE_DELETING
    namespace: str

    def text(self) -> str:
        return f"Namespace {self.namespace} of {self.cluster} is being deleted"


class SelfManaged(ClusterMessage, frozen=True):
    reason = Reason.SELF_MANAGED

    def text(self) -> str:
        return (
            f"{self.cluster} manages itself and cannot delete itself: move its Cluster API objects out with "
            f'clusterctl, or annotate it with {names.ORPHAN_ON_DELETE}: "true" to delete only the LatticeCluster'
        )


class IdentityUnknown(ClusterMessage, frozen=True):
    reason = Reason.IDENTITY_UNKNOWN
    error: str = ""

    def text(self) -> str:
        error = f" ({self.error})" if self.error else ""
        return (
            f"{self.cluster} may be the cluster Nodeyard runs on, and it is unreachable{error}. It is deleted once it "
            f"is reachable or has spec.pivot: {Pivot.NEVER}; annotate it with "
            f'{names.ORPHAN_ON_DELETE}: "true" to delete only the LatticeCluster'
        )
