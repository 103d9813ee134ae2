"""Messages of the states of clusters, pools, classes and Machines, and of what would change a decision."""

from __future__ import annotations

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.base import ClusterMessage, PoolMessage, Sentence, with_error
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.plan.layout import counted
from nodeyard.plan.message import Message

# clusters and pools


class Reconciled(Sentence, frozen=True):
    reason = Reason.RECONCILED
    sentence = "All objects match the spec"


class Provisioning(ClusterMessage, frozen=True):
    reason = Reason.PROVISIONING

    def text(self) -> str:
        return f"{self.cluster} is being provisioned"


class ControlPlaneNotComplete(ClusterMessage, frozen=True):
    reason = Reason.CONTROL_PLANE_NOT_COMPLETE
    ready: int
    desired: int

    def text(self) -> str:
        return f"The control plane of {self.cluster} has {self.ready} of {self.desired} replicas ready"


class Scaling(PoolMessage, frozen=True):
    reason = Reason.SCALING
    available: int
    desired: int

    def text(self) -> str:
        return f"Pool {self.label} is scaling: {self.available} of {self.desired} nodes are available"


class Rolling(PoolMessage, frozen=True):
    reason = Reason.ROLLING
    up_to_date: int
    desired: int

    def text(self) -> str:
        return f"Pool {self.label} is rolling out: {self.up_to_date} of {self.desired} nodes are up to date"


class AsSpecified(PoolMessage, frozen=True):
    reason = Reason.AS_SPECIFIED
    cluster: str
    desired: int

    def text(self) -> str:
        field = "spec.nodes" if self.pool == names.DEFAULT_POOL else f"spec.nodes.workerPools.{self.pool}"
        return f"Pool {self.label} of {self.cluster} matches {field}: {counted(self.desired, 'node')}"


class Autoscaled(PoolMessage, frozen=True):
    reason = Reason.AUTOSCALED
    min: int | None
    max: int | None

    def text(self) -> str:
        return f"The cluster-autoscaler scales pool {self.label} between {self.min} and {self.max}"


class MachineState(Message, frozen=True):
    """A Machine of a pool. As a candidate it has its phase as reason."""

    reason = "Machine"
    machine: str
    version: str = ""
    message: str = ""
    """The message of its condition Ready if that is not True."""

    def text(self) -> str:
        return with_error(f"Machine {self.machine}{f' at {self.version}' if self.version else ''}", self.message)


# classes


class ClassMessage(Message, frozen=True):
    node_class: str = msgspec.field(name="class")


class ClassInUse(ClassMessage, frozen=True):
    reason = Reason.CLASS_USED
    pools: int
    nodes: int
    behind: int = 0
    """The number of nodes from an earlier spec of the class."""

    def text(self) -> str:
        pools, nodes = counted(self.pools, "pool"), counted(self.nodes, "node")
        base = f"LatticeNodeClass {self.node_class} is used by {pools} with {nodes}"
        return f"{base}; {self.behind} of them still use an earlier spec of the class" if self.behind else base


class ClassNotUsed(ClassMessage, frozen=True):
    reason = Reason.CLASS_UNUSED

    def text(self) -> str:
        return f"No pool uses LatticeNodeClass {self.node_class}"


class ClassUse(PoolMessage, frozen=True):
    """Base of messages about one pool that uses a class."""

    cluster: str
    nodes: int


class MadeFromClass(ClassUse, frozen=True):
    reason = Reason.CLASS_MADE

    def text(self) -> str:
        return f"Pool {self.label} of {self.cluster} has {counted(self.nodes, 'node')} of this class"


class NotYetMadeFromClass(ClassUse, frozen=True):
    reason = Reason.CLASS_BEHIND

    def text(self) -> str:
        nodes = counted(self.nodes, "node")
        return f"Pool {self.label} of {self.cluster} has {nodes} from an earlier spec of this class"


# remedies


class AddLabel(Sentence, frozen=True):
    reason = Reason.ADD_LABEL
    sentence = "Add the label to the pool, or remove it from the nodeSelector"


class AddToleration(Sentence, frozen=True):
    reason = Reason.ADD_TOLERATION
    sentence = "Tolerate the taint, or remove it from the pool"


class ScaleUp(Sentence, frozen=True):
    reason = Reason.SCALE_UP
    sentence = "Set the replicas of the pool to 1 or more"


class ChangeReplicas(Sentence, frozen=True):
    reason = Reason.CHANGE_REPLICAS
    sentence = "Change the replicas of the pool"


class CreateClass(Sentence, frozen=True):
    reason = Reason.CREATE_CLASS
    sentence = "Create the LatticeNodeClass, or set another nodeClass on the pool"


class FixClass(Sentence, frozen=True):
    reason = Reason.FIX_CLASS
    sentence = "Add an entry for this provider to the class, or set another nodeClass on the pool"


class FixKeys(Sentence, frozen=True):
    reason = Reason.FIX_KEYS
    sentence = "Remove these keys from the pool"


class FixBudget(Sentence, frozen=True):
    reason = Reason.FIX_BUDGET
    sentence = "Make the PodDisruptionBudgets allow the evictions, or delete the pods"


class AddPoolAgain(Sentence, frozen=True):
    reason = Reason.ADD_POOL_AGAIN
    sentence = "Add the pool to the spec again"


class ChangePolicy(Sentence, frozen=True):
    reason = Reason.CHANGE_POLICY
    sentence = "Change spec.poolDeletionPolicy"


class Unpause(Sentence, frozen=True):
    reason = Reason.UNPAUSE
    sentence = "Unpause the Cluster"


class UnpauseDeployment(Sentence, frozen=True):
    reason = Reason.UNPAUSE_DEPLOYMENT
    sentence = f"Remove spec.paused and annotation {names.PAUSED_ANNOTATION} from the MachineDeployment"


class MoveOut(Sentence, frozen=True):
    reason = Reason.MOVE_OUT
    sentence = f'Move the cluster out, or annotate it with {names.ORPHAN_ON_DELETE}: "true"'


class ForgetCluster(Sentence, frozen=True):
    reason = Reason.FORGET_CLUSTER
    sentence = f"Remove annotation {names.CLUSTER_UID} to create the cluster again"


class WaitForControlPlane(Sentence, frozen=True):
    reason = Reason.WAIT_CONTROL_PLANE
    sentence = "Nothing: it changes when the control plane is initialized"
