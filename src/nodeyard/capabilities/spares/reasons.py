"""Reasons of actions, refusals, conditions and decisions. `messages` has the text of each."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    # actions on a node
    CLAIMED = "Claimed"
    ADOPTED = "Adopted"
    UPDATED = "Updated"
    MOVED_OUT = "MovedOut"
    TAKEN_BACK = "TakenBack"
    RELEASING = "Releasing"
    EVICTING = "Evicting"
    EVICTED = "Evicted"
    RELEASED = "Released"
    RELEASE_CANCELLED = "ReleaseCancelled"
    DETACHED = "Detached"
    SPARE_LABELLED = "SpareLabelled"
    SPARE_UNLABELLED = "SpareUnlabelled"
    # actions on a template
    FINALIZER_ADDED = "FinalizerAdded"
    FINALIZER_REMOVED = "FinalizerRemoved"
    ABANDONED = "Abandoned"
    # conditions of nyallocator
    SUFFICIENT = "SufficientNodes"
    HIGH_PRIORITY = "HighPriorityNodeTemplateExists"
    NO_SPARE = "NoSpareNodesFound"
    RECONCILE_ERROR = "ReconcileError"
    RECONCILE_SUCCESS = "ReconcileSuccess"
    # a template is idle
    SURPLUS = "SurplusRetained"
    DRY_RUN = "DryRun"
    PAUSED = "Paused"
    INVALID = "InvalidTemplate"
    DELETING = "TemplateDeleting"
    # a spare is not claimed
    NOT_READY = "NotReady"
    UNSCHEDULABLE = "Unschedulable"
    NOT_EMPTY = "NotEmpty"
    PODS_UNKNOWN = "PodsUnknown"
    OWNED_ELSEWHERE = "OwnedElsewhere"
    NODE_DELETING = "NodeDeleting"
    RESERVED = "ReservedForHigherPriority"
    SELF_DEFEATING = "SelectorWouldNotMatch"
    MISMATCH = "SelectorMismatch"
    ENOUGH = "NotNeeded"
    TAKEN = "TakenByOther"
    # a node with the owner's label is not adopted, or without restricted labels
    NOT_ADOPTED = "NotAdopted"
    WITHHELD = "RestrictedLabelsWithheld"
    # a release waits
    WAITING = "WaitingForPods"
    SETTLING = "WaitingForCordon"
    # state of a node
    KEPT = "Kept"
    SPARE = "Spare"
    NOT_SPARE = "NotSpare"
    DANGLING = "TemplateMissing"
    WAS_MOVED_OUT = "OutOfManagement"
    # remedies
    ADD_SPARE_TAINT = "AddSpareTaint"
    ADD_SPARES = "AddSpares"
    ADD_TEMPLATE = "AddTemplate"
    SET_RELEASE = "SetRelease"
    RAISE_NODES = "RaiseNodes"
    LOWER_NODES = "LowerNodes"
    CHANGE_SELECTOR = "ChangeSelector"
    RAISE_PRIORITY = "RaisePriority"
    END_DRY_RUN = "EndDryRun"
    END_PAUSE = "EndPause"
    FIX_TEMPLATE = "FixTemplate"
    MAKE_READY = "MakeReady"
    UNCORDON = "Uncordon"
    EMPTY_NODE = "EmptyNode"
    LEAVE_ELSEWHERE = "LeaveElsewhere"
    CREATE_TEMPLATE = "CreateTemplate"
