"""Reasons of actions, blocks and decisions; `messages` has the facts and the text of each."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    # objects created and applied
    NAMESPACE_CREATED = "NamespaceCreated"
    CLUSTER_APPLIED = "ClusterApplied"
    INFRASTRUCTURE_APPLIED = "InfrastructureApplied"
    CONTROL_PLANE_APPLIED = "ControlPlaneApplied"
    CONTROL_PLANE_SCALED = "ControlPlaneScaled"
    TEMPLATE_CREATED = "TemplateCreated"
    TEMPLATE_ANNOTATED = "TemplateAnnotated"
    TEMPLATE_DELETED = "TemplateDeleted"
    POOL_CREATED = "PoolCreated"
    POOL_UPDATED = "PoolUpdated"
    POOL_ROLLED = "PoolRolled"
    POOL_ADOPTED = "PoolAdopted"
    POOL_SCALED = "PoolScaled"
    REPLICAS_TAKEN_OVER = "ReplicasTakenOver"
    FIELDS_TAKEN_OVER = "FieldsTakenOver"
    CLUSTER_ANNOTATED = "ClusterAnnotated"
    FINALIZER_ADDED = "FinalizerAdded"
    FINALIZER_REMOVED = "FinalizerRemoved"
    # drains and deletions
    DRAIN_STARTED = "DrainStarted"
    DRAIN_CANCELLED = "DrainCancelled"
    NODE_CORDONED = "NodeCordoned"
    NODE_UNCORDONED = "NodeUncordoned"
    POD_EVICTED = "PodEvicted"
    DRAIN_OPTIONS_SET = "PoolMarkedForDeletion"
    POOL_DELETED = "PoolDeleted"
    CLUSTER_DELETED = "ClusterDeleted"
    NAMESPACE_DELETED = "NamespaceDeleted"
    # waiting
    DRAINING = "Draining"
    DRAIN_TIMEOUT = "DrainTimeout"
    PODS_UNKNOWN = "PodsUnknown"
    WORKLOAD_UNREACHABLE = "WorkloadClusterUnreachable"
    DRAIN_OPTIONS_PENDING = "WaitingForMachines"
    MACHINES_UNSEEN = "MachinesUnseen"
    DEPLOYMENT_DELETING = "WaitingForMachineDeployment"
    NOT_PIVOTED = "NotPivoted"
    CONTROL_PLANE_PENDING = "ControlPlanePending"
    VERSION_WAITS = "VersionWaits"
    VERSION_STOPPED = "VersionStopped"
    VERSION_SKEW = "VersionSkew"
    CLUSTER_DELETING = "ClusterDeleting"
    NAMESPACE_DELETING = "NamespaceDeleting"
    # blocked
    INVALID = "Invalid"
    PAUSED = "Paused"
    CLUSTER_PAUSED = "ClusterPaused"
    CLUSTER_GONE = "ClusterGone"
    NODE_CLASS_NOT_FOUND = "NodeClassNotFound"
    NODE_CLASS_UNFIT = "NodeClassUnfit"
    KEY_REFUSED = "KeyRefused"
    PROVIDER_NOT_SERVED = "ProviderNotServed"
    FOREIGN = "Foreign"
    DUPLICATE = "TwoMachineDeployments"
    SELF_MANAGED = "SelfManaged"
    IDENTITY_UNKNOWN = "WorkloadClusterUnknown"
    # warnings
    AUTOSCALING_IGNORED = "AutoscalingIgnored"
    AUTOSCALED = "Autoscaled"
    AUTOSCALING_INCOMPLETE = "AutoscalingIncomplete"
    WORKERS_UNCLAIMED = "WorkersUnclaimed"
    ORPHAN_DELETES = "OrphanDeletesMachines"
    ALL_POOLS_REMOVED = "AllPoolsRemoved"
    # states of clusters, pools and classes
    RECONCILED = "Reconciled"
    PROVISIONING = "Provisioning"
    CONTROL_PLANE_NOT_COMPLETE = "ControlPlaneNotComplete"
    SCALING = "Scaling"
    ROLLING = "Rolling"
    AS_SPECIFIED = "AsSpecified"
    POD_AWAITED = "WaitingForPod"
    CLASS_USED = "ClassInUse"
    CLASS_UNUSED = "ClassNotUsed"
    CLASS_MADE = "MadeFromClass"
    CLASS_BEHIND = "NotYetMadeFromClass"
    # matching of services
    PLACED = "Placed"
    FITS = "Fits"
    UNPLACED = "NoPoolFits"
    LABEL_MISSING = "LabelMissing"
    LABEL_DIFFERS = "LabelDiffers"
    TAINT_NOT_TOLERATED = "TaintNotTolerated"
    POOL_EMPTY = "PoolEmpty"
    POOL_DRAINING = "PoolDraining"
    CLUSTER_NOT_READY = "ClusterNotReady"
    # remedies
    ADD_LABEL = "AddLabel"
    ADD_TOLERATION = "AddToleration"
    SCALE_UP = "ScaleUp"
    CREATE_CLASS = "CreateClass"
    FIX_CLASS = "FixClass"
    FIX_KEYS = "FixKeys"
    FIX_BUDGET = "FixBudget"
    ADD_POOL_AGAIN = "AddPoolAgain"
    CHANGE_POLICY = "ChangePolicy"
    UNPAUSE = "Unpause"
    UNPAUSE_DEPLOYMENT = "UnpauseDeployment"
    MOVE_OUT = "MoveOut"
    FORGET_CLUSTER = "ForgetCluster"
    CHANGE_REPLICAS = "ChangeReplicas"
    WAIT_CONTROL_PLANE = "WaitForControlPlane"


WAITS = frozenset(
    {
        Reason.DRAINING,
        Reason.PODS_UNKNOWN,
        Reason.DRAIN_OPTIONS_PENDING,
        Reason.MACHINES_UNSEEN,
        Reason.DEPLOYMENT_DELETING,
        Reason.NOT_PIVOTED,
        Reason.CONTROL_PLANE_PENDING,
        Reason.VERSION_WAITS,
        Reason.CLUSTER_DELETING,
        Reason.NAMESPACE_DELETING,
    }
)
"""Reasons that resolve without an action of the user."""
WARNINGS = frozenset(
    {
        Reason.AUTOSCALING_IGNORED,
        Reason.AUTOSCALING_INCOMPLETE,
        Reason.WORKERS_UNCLAIMED,
        Reason.ORPHAN_DELETES,
        Reason.ALL_POOLS_REMOVED,
    }
)
"""Reasons that are Events only: they block nothing."""
REJECTIONS = frozenset(
    {
        Reason.INVALID,
        Reason.NODE_CLASS_NOT_FOUND,
        Reason.NODE_CLASS_UNFIT,
        Reason.KEY_REFUSED,
        Reason.PROVIDER_NOT_SERVED,
        Reason.DUPLICATE,
    }
)
"""Reasons that make the condition Accepted False."""
DRAIN_REASONS = frozenset({Reason.DRAINING, Reason.DRAIN_TIMEOUT, Reason.PODS_UNKNOWN, Reason.WORKLOAD_UNREACHABLE})
"""Reasons that make the condition PoolsDrained False."""
REMOVAL_REASONS = DRAIN_REASONS | {Reason.DRAIN_OPTIONS_PENDING, Reason.MACHINES_UNSEEN}
"""Reasons about removed pools, which do not affect the condition Ready."""
POOL_CHANGES = frozenset(
    {Reason.POOL_CREATED, Reason.POOL_UPDATED, Reason.POOL_ROLLED, Reason.POOL_ADOPTED, Reason.POOL_SCALED}
)
"""Changes of a pool that its counters do not reflect yet."""
VERSION_REASONS = frozenset({Reason.VERSION_WAITS, Reason.VERSION_STOPPED, Reason.VERSION_SKEW})
"""Reasons that make the condition VersionCurrent False."""
