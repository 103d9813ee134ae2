"""NodeTemplate as nyallocator defines it, with Nodeyard's opt-in fields.

Decoding is lenient: an object that an older schema admitted must still decode, so that its status can report the error.
`validation` checks the content.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nodeyard.capabilities.spares import names
from nodeyard.kube.names import PAUSED
from nodeyard.kube.objects import Condition, NullableStruct, ObjectMeta, PlainStruct, Slice, StringMap, Taint


class LabelSelectorRequirement(NullableStruct, frozen=True):
    key: Annotated[str, Meta(description="Label key that the requirement applies to.")] = ""
    operator: Annotated[str, Meta(description="Operator: In, NotIn, Exists or DoesNotExist.")] = ""
    values: Annotated[
        Slice[str], Meta(description="Values for In and NotIn; must be empty for Exists and DoesNotExist.")
    ] = ()


class LabelSelector(NullableStruct, frozen=True):
    match_labels: Annotated[StringMap, Meta(description="Labels that a node must have with exactly these values.")] = {}
    match_expressions: Annotated[
        Slice[LabelSelectorRequirement], Meta(description="Further requirements; all must be met.")
    ] = ()


class TemplateMetadata(NullableStruct, frozen=True):
    labels: Annotated[StringMap, Meta(description="Labels to set on the nodes.")] = {}
    annotations: Annotated[StringMap, Meta(description="Annotations to set on the nodes.")] = {}


class TemplateNodeSpec(NullableStruct, frozen=True):
    taints: Annotated[Slice[Taint], Meta(description="Taints to set on the nodes, identified by key and effect.")] = ()


class Template(PlainStruct, frozen=True):
    metadata: Annotated[TemplateMetadata, Meta(description="Labels and annotations to set on the nodes.")] = (
        TemplateMetadata()
    )
    spec: Annotated[TemplateNodeSpec, Meta(description="Node spec to set: taints.")] = TemplateNodeSpec()


class Eligibility(PlainStruct, frozen=True):
    require_ready: Annotated[
        bool, Meta(description="Claim only nodes that are Ready and not cordoned. By default neither is checked.")
    ] = False
    require_empty: Annotated[
        bool, Meta(description="Claim only nodes that run no pods other than DaemonSet and static pods.")
    ] = False


class Spread(PlainStruct, frozen=True):
    topology_key: Annotated[
        str,
        Meta(description="Node label to spread claims over. Default: topology.kubernetes.io/zone."),
    ] = ""


class Adoption(PlainStruct, frozen=True):
    restricted_labels: Annotated[
        bool,
        Meta(
            description="Also set labels under node-restriction.kubernetes.io on adopted nodes. Whoever can register a "
            "node with the template's label then obtains these labels."
        ),
    ] = False


class ReleasePolicy(StrEnum):
    RETAIN = "Retain"
    RELEASE = "Release"


class Release(PlainStruct, frozen=True):
    evict_after_seconds: Annotated[
        int | None,
        Meta(
            description="Seconds after the cordon when remaining pods are evicted, respecting PodDisruptionBudgets. "
            "If unset, a release waits until the pods have left."
        ),
    ] = None


class NodeTemplateSpec(PlainStruct, frozen=True):
    selector: Annotated[
        LabelSelector | None,
        Meta(description="Nodes that the template may claim and keep. An empty selector matches all nodes."),
    ] = None
    nodes: Annotated[int, Meta(description="Desired number of nodes.", extra_json_schema={"minimum": 0})] = 0
    priority: Annotated[
        int, Meta(description="Templates with a higher priority claim first; equal priorities claim by name.")
    ] = 1
    dry_run: Annotated[
        bool | None,
        Meta(description="Write nothing; report in status, an event and `nodeyard plan` what would be done."),
    ] = None
    dry_run_spelled: Annotated[
        bool | None, Meta(description="Alternative spelling of dryRun. If both are set, they must be equal.")
    ] = msgspec.field(default=None, name="dry-run")
    template: Annotated[Template, Meta(description="Labels, annotations and taints to set on the nodes.")] = Template()
    eligibility: Annotated[Eligibility, Meta(description="Requirements on spares that may be claimed.")] = Eligibility()
    adoption: Annotated[
        Adoption, Meta(description="Settings for adopted nodes: nodes with the template's label that were not claimed.")
    ] = Adoption()
    spread: Annotated[Spread, Meta(description="Topology to spread claims over.")] = Spread()
    prune: Annotated[
        bool,
        Meta(description="Remove settings from nodes that an earlier version of the template made and this one omits."),
    ] = False
    release_policy: Annotated[
        str,
        Meta(
            description="Handling of surplus nodes and of the nodes of a deleted template. Retain leaves them as they "
            "are. Release cordons them, waits for their pods, undoes the template's settings and makes them spare.",
            extra_json_schema={"enum": ["Retain", "Release"]},
        ),
    ] = ReleasePolicy.RETAIN.value
    release: Annotated[Release, Meta(description="Options for releasePolicy Release.")] = Release()
    paused: Annotated[bool, Meta(description="Suspend reconciliation of the template and its nodes.")] = False


class ReconcileInfo(PlainStruct, frozen=True):
    observed_generation: Annotated[int, Meta(description="Generation of the spec that this status describes.")] = 0


class WouldDo(NullableStruct, frozen=True):
    claims: Annotated[int, Meta(description="Number of spares to claim, and of nodes to take back.")] = 0
    updates: Annotated[int, Meta(description="Number of nodes to adopt, update or keep from release.")] = 0
    moves: Annotated[int, Meta(description="Number of nodes to move out of management or detach.")] = 0
    releases: Annotated[int, Meta(description="Number of nodes to release.")] = 0
    nodes: Annotated[Slice[str], Meta(description="First 50 of these nodes, by name.")] = ()


class NodeTemplateStatus(NullableStruct, frozen=True, omit_defaults=True):
    current_nodes: Annotated[int, Meta(description="Number of nodes that the template has.")] = 0
    reconcile_info: Annotated[ReconcileInfo, Meta(description="Generation that was reconciled.")] = ReconcileInfo()
    conditions: Annotated[
        Slice[Condition],
        Meta(description="Conditions: Sufficient, ReconcileSuccess, and Surplus while surplus nodes are retained."),
    ] = ()
    nodes: Annotated[Slice[str], Meta(description="First 50 nodes, by name.")] = ()
    zones: Annotated[dict[str, int], Meta(description="Number of nodes per zone.")] = {}
    refusals: Annotated[
        dict[str, int], Meta(description="Number of matching nodes that were not claimed or adopted, by reason.")
    ] = {}
    dry_run: Annotated[WouldDo | None, Meta(description="Changes that a dry run would make.")] = None


class NodeTemplate(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[NodeTemplateSpec, Meta(description="Desired state.")] = NodeTemplateSpec()
    status: Annotated[NodeTemplateStatus, Meta(description="Observed state.")] = NodeTemplateStatus()

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
        """The selector as plain JSON."""
        return None if self.spec.selector is None else msgspec.to_builtins(self.spec.selector)
