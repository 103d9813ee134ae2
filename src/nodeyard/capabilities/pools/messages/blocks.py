"""Messages of refusals, waits and warnings of clusters and pools."""

from __future__ import annotations

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.base import ClusterMessage, PoolMessage, with_error
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.plan.message import Message

# waits


class NotPivoted(ClusterMessage, frozen=True):
    reason = Reason.NOT_PIVOTED
    error: str = ""

    def text(self) -> str:
        return with_error(
            f"Workers start after the Cluster API objects of {self.cluster} are moved into it", self.error
        )


class ControlPlanePending(ClusterMessage, frozen=True):
    reason = Reason.CONTROL_PLANE_PENDING

    def text(self) -> str:
        return f"Workers start after the control plane of {self.cluster} is initialized"


class VersionWaits(PoolMessage, frozen=True, kw_only=True):
    reason = Reason.VERSION_WAITS
    pool: str = ""
    """The id of the pool that the upgrade waits for; empty for the control plane."""
    version: str = ""
    """The version that it has now."""
    to: str
    desired: int | None = None
    running: int = 0
    """The number of Machines that run the version."""

    def text(self) -> str:
        what = f"pool {self.label}" if self.pool else "the control plane"
        version = f" (now at {self.version})" if self.version not in ("", self.to) else ""
        progress = "" if self.desired is None else f": {self.running} of {self.desired} Machines run it"
        return f"Upgrade to {self.to} is waiting for {what}{version}{progress}"


class VersionStopped(PoolMessage, frozen=True):
    reason = Reason.VERSION_STOPPED
    to: str
    why: str

    def text(self) -> str:
        return f"Upgrade to {self.to} stopped at pool {self.label}: {self.why}"


class VersionSkew(Message, frozen=True):
    reason = Reason.VERSION_SKEW
    from_: str = msgspec.field(name="from")
    to: str

    def text(self) -> str:
        return (
            f"The control plane cannot go from {self.from_} to {self.to}: upgrade one minor version at a time; "
            "downgrades are not supported"
        )


# refusals


class Invalid(Message, frozen=True):
    reason = Reason.INVALID
    error: str

    def text(self) -> str:
        return self.error


class ClusterPaused(ClusterMessage, frozen=True):
    reason = Reason.CLUSTER_PAUSED

    def text(self) -> str:
        return f"The Cluster of {self.cluster} is paused (spec.paused or annotation): nothing is written"


class ClusterGone(ClusterMessage, frozen=True):
    reason = Reason.CLUSTER_GONE

    def text(self) -> str:
        return (
            f"The Cluster of {self.cluster} was initialized and no longer exists here: it was moved to another "
            "management cluster, or deleted. It is not recreated. Delete this LatticeCluster, or remove its annotation "
            f"{names.CLUSTER_UID} to create the cluster again"
        )


class NodeClassNotFound(PoolMessage, frozen=True):
    reason = Reason.NODE_CLASS_NOT_FOUND
    node_class: str = msgspec.field(name="class")

    def text(self) -> str:
        return f"LatticeNodeClass {self.node_class} of pool {self.label} does not exist"


class NodeClassUnfit(PoolMessage, frozen=True):
    reason = Reason.NODE_CLASS_UNFIT
    node_class: str = msgspec.field(name="class")
    error: str

    def text(self) -> str:
        return f"LatticeNodeClass {self.node_class} cannot be used by pool {self.label}: {self.error}"


class KeyRefused(PoolMessage, frozen=True):
    reason = Reason.KEY_REFUSED
    faults: tuple[str, ...]

    def text(self) -> str:
        return f"Nodes of pool {self.label} could not join: {'; '.join(self.faults)}"


class ProviderNotServed(Message, frozen=True):
    reason = Reason.PROVIDER_NOT_SERVED
    error: str

    def text(self) -> str:
        return self.error


class Foreign(Message, frozen=True):
    reason = Reason.FOREIGN
    name: str

    def text(self) -> str:
        return f"{self.name} is not managed by this LatticeCluster and is left unchanged"


class TwoMachineDeployments(PoolMessage, frozen=True):
    reason = Reason.DUPLICATE
    kept: str
    other: str

    def text(self) -> str:
        return f"Pool {self.label} has two MachineDeployments: {self.kept} is used, {self.other} is left unchanged"


# warnings


class AutoscalingIgnored(PoolMessage, frozen=True):
    reason = Reason.AUTOSCALING_IGNORED
    replicas: int

    def text(self) -> str:
        return f'pool="{self.pool}": min/max autoscaling not implemented, using fixed replicas={self.replicas}'


class AutoscalingIncomplete(PoolMessage, frozen=True):
    reason = Reason.AUTOSCALING_INCOMPLETE
    missing: str
    """The missing bound: min or max."""
    replicas: int

    def text(self) -> str:
        return (
            f"Pool {self.label} has no {self.missing}: the cluster-autoscaler needs min and max, so the pool keeps "
            f"replicas={self.replicas}"
        )


class WorkersUnclaimed(ClusterMessage, frozen=True):
    reason = Reason.WORKERS_UNCLAIMED
    name: str
    """The name of the MachineDeployment."""
    replicas: int

    def text(self) -> str:
        return (
            f"MachineDeployment {self.name} with {self.replicas} replicas belongs to no pool of {self.cluster} and is "
            f"left unchanged. Add pool {names.DEFAULT_POOL} to spec.nodes.workerPools to manage it, or delete it"
        )
