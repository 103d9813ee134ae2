"""Messages that say what would change a decision."""

from __future__ import annotations

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.base import Sentence
from nodeyard.capabilities.pools.reasons import Reason


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
