"""NodeTemplate as nyallocator defines it, and the fields that are ours, all of them opt-in.

Decoding is lenient on purpose: an object that a laxer schema let in must still decode, so that it gets a condition
instead of silence. What is wrong with a template is said by `planning.validity`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nodeyard.capabilities.spares import names
from nodeyard.kube.names import PAUSED
from nodeyard.kube.objects import Condition, NullableStruct, ObjectMeta, PlainStruct, Slice, StringMap, Taint


class Reason(StrEnum):
    """Why something is done, refused, or as it is. `messages.text` makes a sentence of each."""

    # what is done to a node
    CLAIMED = "Claimed"
    UPDATED = "Updated"
    MOVED_OUT = "MovedOut"
    RELEASING = "Releasing"
    EVICTING = "Evicting"
    EVICTED = "Evicted"
    RELEASED = "Released"
    RELEASE_CANCELLED = "ReleaseCancelled"
    LET_GO = "LetGo"
    SPARE_LABELLED = "SpareLabelled"
    SPARE_UNLABELLED = "SpareUnlabelled"
    # what is done to a template
    FINALIZER_ADDED = "FinalizerAdded"
    FINALIZER_REMOVED = "FinalizerRemoved"
    ABANDONED = "Abandoned"
    # conditions, in nyallocator's words
    SUFFICIENT = "SufficientNodes"
    HIGH_PRIORITY = "HighPriorityNodeTemplateExists"
    NO_SPARE = "NoSpareNodesFound"
    RECONCILE_ERROR = "ReconcileError"
    RECONCILE_SUCCESS = "ReconcileSuccess"
    # why a template does nothing
    DRY_RUN = "DryRun"
    PAUSED = "Paused"
    INVALID = "InvalidTemplate"
    DELETING = "TemplateDeleting"
    # why a spare is left
    NOT_READY = "NotReady"
    NOT_EMPTY = "NotEmpty"
    PODS_UNKNOWN = "PodsUnknown"
    OWNED_ELSEWHERE = "OwnedElsewhere"
    NODE_DELETING = "NodeDeleting"
    HELD = "HeldForHigherPriority"
    SELF_DEFEATING = "SelectorWouldNotMatch"
    MISMATCH = "SelectorMismatch"
    ENOUGH = "NotNeeded"
    TAKEN = "TakenByOther"
    # why a release waits
    WAITING = "WaitingForPods"
    SETTLING = "WaitingForCordon"
    # how a node stands
    KEPT = "Kept"
    SPARE = "Spare"
    NOT_SPARE = "NotSpare"
    DANGLING = "TemplateMissing"
    WAS_MOVED_OUT = "OutOfManagement"
    # what would change it
    ADD_SPARE_TAINT = "AddSpareTaint"
    ADD_SPARES = "AddSpares"
    RAISE_NODES = "RaiseNodes"
    LOWER_NODES = "LowerNodes"
    CHANGE_SELECTOR = "ChangeSelector"
    RAISE_PRIORITY = "RaisePriority"
    END_DRY_RUN = "EndDryRun"
    END_PAUSE = "EndPause"
    MEND_TEMPLATE = "MendTemplate"
    MAKE_READY = "MakeReady"
    EMPTY_NODE = "EmptyNode"
    LEAVE_ELSEWHERE = "LeaveElsewhere"
    CREATE_TEMPLATE = "CreateTemplate"


class LabelSelectorRequirement(NullableStruct, frozen=True):
    key: Annotated[str, Meta(description="The label key that the requirement is about.")] = ""
    operator: Annotated[
        str, Meta(description="How the key relates to the values: In, NotIn, Exists, DoesNotExist.")
    ] = ""
    values: Annotated[Slice[str], Meta(description="The values of In and NotIn; empty for the others.")] = ()


class LabelSelector(NullableStruct, frozen=True):
    match_labels: Annotated[StringMap, Meta(description="Labels a node must have with exactly these values.")] = {}
    match_expressions: Annotated[
        Slice[LabelSelectorRequirement], Meta(description="Further requirements; all must hold.")
    ] = ()


class TemplateMetadata(NullableStruct, frozen=True):
    labels: Annotated[StringMap, Meta(description="Labels that the template's nodes carry.")] = {}
    annotations: Annotated[StringMap, Meta(description="Annotations that the template's nodes carry.")] = {}


class TemplateNodeSpec(NullableStruct, frozen=True):
    taints: Annotated[
        Slice[Taint], Meta(description="Taints that the template's nodes carry, each known by its key and effect.")
    ] = ()


class Template(PlainStruct, frozen=True):
    metadata: Annotated[TemplateMetadata, Meta(description="Labels and annotations of the nodes.")] = TemplateMetadata()
    spec: Annotated[TemplateNodeSpec, Meta(description="Settings of the nodes.")] = TemplateNodeSpec()


class Eligibility(PlainStruct, frozen=True):
    require_ready: Annotated[
        bool, Meta(description="Claim only nodes whose Ready condition is True. Without it readiness is not looked at.")
    ] = False
    require_empty: Annotated[
        bool, Meta(description="Claim only nodes that run no pods but those of DaemonSets and static ones.")
    ] = False


class Spread(PlainStruct, frozen=True):
    topology_key: Annotated[
        str,
        Meta(description="The node label over whose values nodes are spread; topology.kubernetes.io/zone if empty."),
    ] = ""


class ReleasePolicy(StrEnum):
    RETAIN = "Retain"
    RELEASE = "Release"


class Release(PlainStruct, frozen=True):
    evict_after_seconds: Annotated[
        int | None,
        Meta(
            description="How long after the cordon the remaining pods are evicted, disruption budgets respected. "
            "Without it a release waits until the pods are gone by themselves."
        ),
    ] = None


class NodeTemplateSpec(PlainStruct, frozen=True):
    selector: Annotated[
        LabelSelector | None, Meta(description="Which nodes may be claimed, and may stay. An empty one selects all.")
    ] = None
    nodes: Annotated[
        int, Meta(description="How many nodes the template shall have.", extra_json_schema={"minimum": 0})
    ] = 0
    priority: Annotated[
        int, Meta(description="Templates of a higher priority choose first; among equals the name decides.")
    ] = 1
    dry_run: Annotated[
        bool | None, Meta(description="Change nothing; what would be done is in status, an event and `nodeyard plan`.")
    ] = None
    dry_run_spelled: Annotated[
        bool | None, Meta(description="Another spelling of dryRun. Both may be given only if they agree.")
    ] = msgspec.field(default=None, name="dry-run")
    template: Annotated[Template, Meta(description="What a node of this template looks like.")] = Template()
    eligibility: Annotated[Eligibility, Meta(description="What a spare must be to be claimed.")] = Eligibility()
    spread: Annotated[Spread, Meta(description="What nodes are spread over.")] = Spread()
    prune: Annotated[
        bool, Meta(description="Take off nodes what an earlier version of the template put there and this one omits.")
    ] = False
    release_policy: Annotated[
        str,
        Meta(
            description="What becomes of surplus nodes and of the nodes of a deleted template: Retain leaves them as "
            "they are, Release cordons them, waits for their pods, undoes the template and gives them back as spares.",
            extra_json_schema={"enum": ["Retain", "Release"]},
        ),
    ] = ReleasePolicy.RETAIN.value
    release: Annotated[Release, Meta(description="How nodes are given back.")] = Release()
    paused: Annotated[bool, Meta(description="Leave the template and its nodes alone.")] = False


class ReconcileInfo(PlainStruct, frozen=True):
    observed_generation: Annotated[int, Meta(description="The generation of the spec that this status is about.")] = 0


class WouldDo(NullableStruct, frozen=True, omit_defaults=True):
    claims: Annotated[int, Meta(description="Spares it would claim.")] = 0
    updates: Annotated[int, Meta(description="Nodes it would bring back to the described state.")] = 0
    moves: Annotated[int, Meta(description="Nodes it would put out of management.")] = 0
    releases: Annotated[int, Meta(description="Nodes it would give back.")] = 0
    nodes: Annotated[Slice[str], Meta(description="The first 50 of those nodes.")] = ()


class NodeTemplateStatus(NullableStruct, frozen=True, omit_defaults=True):
    current_nodes: Annotated[int, Meta(description="How many nodes the template has.")] = 0
    reconcile_info: Annotated[ReconcileInfo, Meta(description="What was looked at.")] = ReconcileInfo()
    conditions: Annotated[Slice[Condition], Meta(description="Sufficient and ReconcileSuccess.")] = ()
    nodes: Annotated[Slice[str], Meta(description="The first 50 nodes by name.")] = ()
    zones: Annotated[dict[str, int], Meta(description="How many of the nodes are in each zone.")] = {}
    refusals: Annotated[
        dict[str, int], Meta(description="How many spares that match the selector were left, by reason.")
    ] = {}
    dry_run: Annotated[WouldDo | None, Meta(description="What would be done if this were no dry run.")] = None


class NodeTemplate(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[NodeTemplateSpec, Meta(description="What is wanted.")] = NodeTemplateSpec()
    status: Annotated[NodeTemplateStatus, Meta(description="What is.")] = NodeTemplateStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_dry_run(self) -> bool:
        return bool(self.spec.dry_run or self.spec.dry_run_spelled)

    @property
    def is_paused(self) -> bool:
        return self.spec.paused or self.metadata.annotations.get(PAUSED) == names.TRUE

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def releases(self) -> bool:
        return self.spec.release_policy == ReleasePolicy.RELEASE.value

    @property
    def has_finalizer(self) -> bool:
        return names.FINALIZER in self.metadata.finalizers

    @property
    def selector_object(self) -> dict[str, Any] | None:
        """The selector in the form in which a spec has it."""
        return None if self.spec.selector is None else msgspec.to_builtins(self.spec.selector)
