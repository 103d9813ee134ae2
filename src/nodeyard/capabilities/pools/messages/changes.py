"""Messages of actions that bring the objects of a LatticeCluster to its spec."""

from __future__ import annotations

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.base import ClusterMessage, PoolMessage
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.plan.layout import counted
from nodeyard.plan.message import Message

# clusters


class NamespaceCreated(ClusterMessage, frozen=True):
    reason = Reason.NAMESPACE_CREATED

    def text(self) -> str:
        return f"Creates the namespace of {self.cluster}"


class ClusterApplied(ClusterMessage, frozen=True):
    reason = Reason.CLUSTER_APPLIED

    def text(self) -> str:
        return f"Applies the Cluster of {self.cluster}"


class InfrastructureApplied(ClusterMessage, frozen=True):
    reason = Reason.INFRASTRUCTURE_APPLIED

    def text(self) -> str:
        return f"Applies the infrastructure cluster of {self.cluster}"


class ControlPlaneChange(ClusterMessage, frozen=True):
    """A change of the control plane. A scale and a rollout may happen together."""

    version: str
    from_: int = msgspec.field(name="from")
    """The current replicas; 0 if it does not exist yet."""
    to: int
    nodes: int = 0
    """The number of nodes that a rollout replaces."""
    why: tuple[str, ...] = ()
    """The changed parts that cause a rollout; empty without a rollout."""

    def text(self) -> str:
        if not self.from_:
            return f"Creates the control plane of {self.cluster} at {self.version}"
        if self.from_ != self.to:
            return self._scale()
        if self.why:
            return f"Starts {self._rollout()}"
        return f"Updates the control plane of {self.cluster} in place; no node is replaced"

    def _scale(self) -> str:
        lost = self.from_ - self.to
        deleted = f", which deletes {counted(lost, 'control plane node')}" if lost > 0 else ""
        rollout = f", together with {self._rollout()}" if self.why else ""
        return f"Scales the control plane of {self.cluster} from {self.from_} to {self.to}{deleted}{rollout}"

    def _rollout(self) -> str:
        replaced = counted(self.nodes, "control plane node")
        return f"a rollout that replaces {replaced} of {self.cluster}, one at a time: {', '.join(self.why)} changed"


class ControlPlaneApplied(ControlPlaneChange, frozen=True):
    reason = Reason.CONTROL_PLANE_APPLIED


class ControlPlaneScaled(ControlPlaneChange, frozen=True):
    reason = Reason.CONTROL_PLANE_SCALED


class ClusterAnnotated(ClusterMessage, frozen=True):
    reason = Reason.CLUSTER_ANNOTATED

    def text(self) -> str:
        return f"Records the uid of the Cluster of {self.cluster} in annotation {names.CLUSTER_UID}"


class FinalizerAdded(ClusterMessage, frozen=True):
    reason = Reason.FINALIZER_ADDED

    def text(self) -> str:
        return f"Adds finalizer {names.FINALIZER} to {self.cluster}"


class FieldsTakenOver(Message, frozen=True):
    reason = Reason.FIELDS_TAKEN_OVER
    object: str

    def text(self) -> str:
        return f"Takes field ownership of {self.object} from clusterctl; no value changes"


# templates


class TemplateMessage(Message, frozen=True):
    template: str


class TemplateCreated(TemplateMessage, frozen=True):
    reason = Reason.TEMPLATE_CREATED

    def text(self) -> str:
        return f"Creates template {self.template}"


class TemplateAnnotated(TemplateMessage, frozen=True):
    reason = Reason.TEMPLATE_ANNOTATED

    def text(self) -> str:
        return f"Records the inputs of template {self.template} in its annotations; no node is replaced"


class TemplateDeleted(TemplateMessage, frozen=True):
    reason = Reason.TEMPLATE_DELETED

    def text(self) -> str:
        return f"Deletes template {self.template}, which nothing references"


# pools


class PoolCreated(PoolMessage, frozen=True):
    reason = Reason.POOL_CREATED
    cluster: str

    def text(self) -> str:
        return f"Creates pool {self.label} of {self.cluster} with 0 nodes"


class PoolUpdated(PoolMessage, frozen=True):
    reason = Reason.POOL_UPDATED

    def text(self) -> str:
        return f"Updates pool {self.label} in place; no node is replaced"


class PoolRolled(PoolMessage, frozen=True):
    reason = Reason.POOL_ROLLED
    nodes: int
    why: tuple[str, ...]
    """The changed parts."""

    def text(self) -> str:
        nodes, why = counted(self.nodes, "node"), ", ".join(self.why)
        return f"Starts a rollout of pool {self.label} that replaces {nodes}, one at a time: {why} changed"


class PoolAdopted(PoolMessage, frozen=True):
    reason = Reason.POOL_ADOPTED
    cluster: str

    def text(self) -> str:
        return f"Adopts existing objects as pool {self.label} of {self.cluster}; no node is replaced"


class PoolScaled(PoolMessage, frozen=True):
    reason = Reason.POOL_SCALED
    from_: int = msgspec.field(name="from")
    to: int

    def text(self) -> str:
        return f"Scales pool {self.label} from {self.from_} to {self.to}"


class ReplicasTakenOver(PoolMessage, frozen=True):
    reason = Reason.REPLICAS_TAKEN_OVER
    replicas: int

    def text(self) -> str:
        return f"Takes ownership of spec.replicas of pool {self.label}, which stays {self.replicas}"
