"""The messages of spares: one class per reason, with its facts and its sentence.

The sentences of nyallocator's own reasons are its interface and do not change.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.kube.names import PAUSED
from nodeyard.plan.builder import NAMED
from nodeyard.plan.message import Message, listed
from nodeyard.plan.model import Action


def count_nodes(number: int) -> str:
    return f"{number} {'node' if number == 1 else 'nodes'}"


class SparesMessage(Message, frozen=True):
    """A message about a template, or about a node of it."""

    template: str = ""
    node: str = ""


class PlainMessage(SparesMessage, frozen=True):
    """A message whose sentence has no facts."""

    sentence: ClassVar[str]

    def text(self) -> str:
        return self.sentence


class NodesMessage(SparesMessage, frozen=True):
    """A message about one node or several; its sentence may name `{nodes}`, `{template}` and `{zone}`."""

    sentence: ClassVar[str]
    zone: str = ""
    count: int = 0
    nodes: tuple[str, ...] = ()
    """The first names, if there are several nodes."""

    def text(self) -> str:
        zone = f" from zone {self.zone}" if self.zone else ""
        return self.sentence.format(nodes=self.format_nodes(), template=self.template, zone=zone)

    def format_nodes(self) -> str:
        """Format the nodes: `2 nodes (a, b)`, `12 nodes (a, b, ... and 2 more)`, `node a` or `the node`."""
        if not self.count:
            return f"node {self.node}" if self.node else "the node"
        more = f" and {self.count - len(self.nodes)} more" if self.count > len(self.nodes) else ""
        return f"{count_nodes(self.count)} ({', '.join(self.nodes)}{more})" if self.nodes else count_nodes(self.count)

    def with_nodes(self, nodes: Iterable[str]) -> NodesMessage:
        """Return the message for several nodes: their count and the first names."""
        every = list(nodes)
        first = tuple(heapq.nsmallest(NAMED, every))
        return msgspec.structs.replace(self, count=len(every), nodes=first, zone="")


# actions on nodes


class Claimed(NodesMessage, frozen=True):
    reason = Reason.CLAIMED
    sentence = "Claims {nodes}{zone} for {template}"


class Adopted(NodesMessage, frozen=True):
    reason = Reason.ADOPTED
    sentence = f"Adopts {{nodes}} by label {names.TEMPLATE_LABEL}={{template}}"


class Updated(NodesMessage, frozen=True):
    reason = Reason.UPDATED
    sentence = "Updates {nodes} to match spec.template of {template}"


class MovedOut(NodesMessage, frozen=True):
    reason = Reason.MOVED_OUT
    sentence = "Moves {nodes} out of management: spec.selector of {template} no longer matches"


class TakenBack(NodesMessage, frozen=True):
    reason = Reason.TAKEN_BACK
    sentence = "Returns {nodes} to {template}: spec.selector matches again"


class Releasing(NodesMessage, frozen=True):
    reason = Reason.RELEASING
    sentence = "Cordons {nodes} for release by {template}"


class Evicting(NodesMessage, frozen=True):
    reason = Reason.EVICTING
    sentence = "Enables pod eviction on {nodes}: {template} has spec.release.evictAfterSeconds"


class Evicted(NodesMessage, frozen=True):
    reason = Reason.EVICTED
    sentence = "Evicts pods from {nodes} for release by {template}"


class Released(NodesMessage, frozen=True):
    reason = Reason.RELEASED
    sentence = "Releases {nodes} from {template} as spare"


class ReleaseCancelled(NodesMessage, frozen=True):
    reason = Reason.RELEASE_CANCELLED
    sentence = "Cancels the release of {nodes} by {template}"


class Detached(NodesMessage, frozen=True):
    reason = Reason.DETACHED
    sentence = "Detaches {nodes} from deleted template {template}; its settings stay"


class SpareLabelled(NodesMessage, frozen=True):
    reason = Reason.SPARE_LABELLED
    sentence = f"Adds label {names.SPARE_LABEL} to {{nodes}}"


class SpareUnlabelled(NodesMessage, frozen=True):
    reason = Reason.SPARE_UNLABELLED
    sentence = f"Removes label {names.SPARE_LABEL} from {{nodes}}: taint {names.SPARE_TAINT} is gone"


# actions on templates


class FinalizerAdded(NodesMessage, frozen=True):
    reason = Reason.FINALIZER_ADDED
    sentence = f"Adds finalizer {names.FINALIZER} to {{template}}"


class FinalizerRemoved(NodesMessage, frozen=True):
    reason = Reason.FINALIZER_REMOVED
    sentence = f"Removes finalizer {names.FINALIZER} from {{template}}"


class Abandoned(NodesMessage, frozen=True):
    reason = Reason.ABANDONED
    sentence = (
        f"Removes finalizer {names.FINALIZER} from {{template}}, which cannot be decoded; its nodes are unchanged"
    )


# state of a template


class TemplateState(SparesMessage, frozen=True):
    """Number of nodes that a template has and lacks."""

    sentence: ClassVar[str]
    desired: int | None = None
    """None: the sentence alone, as nyallocator says it."""
    kept: int = 0
    missing: int = 0
    leaving: int = 0
    higher: str = ""
    """The template of higher priority that is served first."""
    refusals: Mapping[str, int] = {}
    """Number of spares that are not claimed, by reason."""

    def text(self) -> str:
        if self.desired is None:
            return self.sentence
        if self.missing:
            progress = f"lacks {self.missing} of {count_nodes(self.desired)}"
        elif self.kept < self.desired:
            progress = f"has {self.kept} of {count_nodes(self.desired)} and claims {self.desired - self.kept} more"
        else:
            progress = f"has {self.kept} of {count_nodes(self.desired)}"
        if self.leaving:
            progress += f" after losing {count_nodes(self.leaving)} that spec.selector no longer matches"
        refused = ", ".join(f"{count} {reason}" for reason, count in self.refusals.items())
        higher = f" ({self.higher})" if self.higher else ""
        return f"{self.sentence}{higher}: {self.template} {progress}{f'; not claimed: {refused}' if refused else ''}"

    def without_counts(self) -> TemplateState:
        """Return the message without numbers that change with every claim: a lasting refusal gets one Event."""
        return type(self)(template=self.template)


class Sufficient(TemplateState, frozen=True):
    reason = Reason.SUFFICIENT
    sentence = "Current nodes are sufficient"


class HighPriority(TemplateState, frozen=True):
    reason = Reason.HIGH_PRIORITY
    sentence = "There is a NodeTemplate with higher priority that is not sufficient"

    def text(self) -> str:
        if self.desired is None and self.higher:
            return f"{self.sentence} ({self.higher})"
        return super().text()

    def without_counts(self) -> TemplateState:
        return HighPriority(template=self.template, higher=self.higher)


class NoSpare(TemplateState, frozen=True):
    reason = Reason.NO_SPARE
    sentence = "No spare nodes found"


class ReconcileError(PlainMessage, frozen=True):
    reason = Reason.RECONCILE_ERROR
    sentence = "Current nodes are insufficient because of reconcile error"


class ReconcileSuccess(PlainMessage, frozen=True):
    reason = Reason.RECONCILE_SUCCESS
    sentence = "Reconcile succeeded"


class Surplus(SparesMessage, frozen=True, kw_only=True):
    reason = Reason.SURPLUS
    surplus: int

    def text(self) -> str:
        return (
            f"{self.template} has {count_nodes(self.surplus)} more than spec.nodes and keeps "
            f"{'it' if self.surplus == 1 else 'them'}: spec.releasePolicy is Retain"
        )


class DryRun(SparesMessage, frozen=True):
    """Summary of a dry run; a candidate's message has no counts."""

    reason = Reason.DRY_RUN
    claims: int | None = None
    updates: int = 0
    moves: int = 0
    releases: int = 0
    nodes: tuple[str, ...] = ()

    def text(self) -> str:
        if self.claims is None:
            return f"Dry run: {self.template} claims no nodes while spec.dryRun is true"
        counts = {"claim": self.claims, "update": self.updates, "detach": self.moves, "release": self.releases}
        todo = [f"{verb} {count_nodes(count)}" for verb, count in counts.items() if count]
        named = f": {', '.join(self.nodes[:NAMED])}" if self.nodes else ""
        return f"Dry run: would {', '.join(todo)}{named}" if todo else "Dry run: no node would change"


class Paused(SparesMessage, frozen=True):
    reason = Reason.PAUSED
    desired: int | None = None
    kept: int = 0

    def text(self) -> str:
        progress = "" if self.desired is None else f"; it has {self.kept} of {count_nodes(self.desired)}"
        return f"The template is paused by spec.paused or annotation {PAUSED}{progress}"


class Invalid(SparesMessage, frozen=True, kw_only=True):
    reason = Reason.INVALID
    error: str

    def text(self) -> str:
        return self.error


class Deleting(SparesMessage, frozen=True):
    reason = Reason.DELETING
    waits_for_pods: str = ""
    """The pods that a release waits for."""

    def text(self) -> str:
        waits = f"; waiting for pods: {self.waits_for_pods}" if self.waits_for_pods else ""
        return f"The template is being deleted{waits}"


# a spare is not claimed, or a node is not adopted


class NotReady(NodesMessage, frozen=True):
    reason = Reason.NOT_READY
    sentence = "Not Ready, required by spec.eligibility.requireReady of {template}: {nodes}"


class Unschedulable(NodesMessage, frozen=True):
    reason = Reason.UNSCHEDULABLE
    sentence = "Cordoned, excluded by spec.eligibility.requireReady of {template}: {nodes}"


class NotEmpty(NodesMessage, frozen=True):
    reason = Reason.NOT_EMPTY
    sentence = (
        "Running pods other than DaemonSet and static pods, excluded by spec.eligibility.requireEmpty of {template}: "
        "{nodes}"
    )


class PodsUnknown(NodesMessage, frozen=True):
    reason = Reason.PODS_UNKNOWN
    sentence = "Waiting for the Pod cache to sync; pods unknown on {nodes}"


class OwnedElsewhere(NodesMessage, frozen=True):
    reason = Reason.OWNED_ELSEWHERE
    owner: str = ""

    def text(self) -> str:
        owner = f"capability {self.owner}" if self.owner else "another capability"
        return f"Managed by {owner}: {self.format_nodes()}"


class NodeDeleting(NodesMessage, frozen=True):
    reason = Reason.NODE_DELETING
    sentence = "Being deleted: {nodes}"


class Reserved(NodesMessage, frozen=True):
    reason = Reason.RESERVED
    higher: tuple[str, ...] = ()

    def text(self) -> str:
        owner = ", ".join(self.higher)
        owner = f"{owner}, which has a higher priority" if owner else "a template with a higher priority"
        return f"Reserved for {owner}: {self.format_nodes()}"


class SelfDefeating(NodesMessage, frozen=True):
    reason = Reason.SELF_DEFEATING
    sentence = "spec.selector would not match the labels after the claim: {nodes}"


class NotAdopted(NodesMessage, frozen=True):
    reason = Reason.NOT_ADOPTED
    sentence = "Not adopted by {template}, which has as many nodes as spec.nodes without: {nodes}"


class Withheld(NodesMessage, frozen=True):
    reason = Reason.WITHHELD
    sentence = (
        "Withheld labels under node-restriction.kubernetes.io from {nodes}: adopted by {template}, not claimed; "
        "set spec.adoption.restrictedLabels to true to trust such nodes"
    )


class Mismatch(SparesMessage, frozen=True, kw_only=True):
    reason = Reason.MISMATCH
    requirement: str
    label: str
    value: str | None = None
    """The node's value; None if the label is missing."""

    def text(self) -> str:
        missing = f"label {self.label} is missing"
        has = missing if self.value is None else f"the node has {self.label}={self.value}"
        return f"spec.selector requires {self.requirement}; {has}"


class NotNeeded(SparesMessage, frozen=True):
    reason = Reason.ENOUGH
    claims: int = 0
    """Number of other spares that the template claims."""

    def text(self) -> str:
        if self.claims:
            return "Not selected: enough other spares ranked first (least-used zone, then name)"
        return f"Not selected: {self.template} has as many nodes as spec.nodes"


class Taken(SparesMessage, frozen=True, kw_only=True):
    reason = Reason.TAKEN
    owner: str

    def text(self) -> str:
        return f"Claimed by {self.owner}"


# a release waits


class WaitingForPods(NodesMessage, frozen=True):
    reason = Reason.WAITING
    pods: tuple[str, ...] = ()
    pod_count: int = 0

    def text(self) -> str:
        pods = self.format_pods()
        return f"Waiting for pods to leave {self.format_nodes()}{f': {pods}' if pods else ''}"

    def format_pods(self) -> str:
        more = self.pod_count - len(self.pods)
        return f"{', '.join(self.pods)}{f' and {more} more' if more > 0 else ''}"


class WaitingForCordon(NodesMessage, frozen=True):
    reason = Reason.SETTLING
    sentence = "Waiting for pods bound before the cordon to appear in the cache: {nodes}"


# state of a node


class Kept(SparesMessage, frozen=True):
    reason = Reason.KEPT

    def text(self) -> str:
        return f"Belongs to {self.template}"


class UnclaimedSpare(SparesMessage, frozen=True):
    reason = Reason.SPARE
    templates: tuple[str, ...] = ()
    """The templates that select it."""
    not_claiming: tuple[str, ...] = ()
    """Templates that claim nothing, even if they lack nodes: paused, in dry run, or being deleted."""

    def text(self) -> str:
        if not self.templates:
            return "Spare: no template selects it"
        if self.not_claiming:
            return (
                f"Spare: no template that selects it ({listed(self.templates)}) claims it; "
                f"{listed(self.not_claiming)} {'claims' if len(self.not_claiming) == 1 else 'claim'} no nodes now"
            )
        return f"Spare: no template that selects it ({listed(self.templates)}) needs another node"


class NotSpare(SparesMessage, frozen=True):
    reason = Reason.NOT_SPARE
    role: str = ""

    def text(self) -> str:
        role = f" (a {self.role} node)" if self.role else ""
        return f"Not spare: neither taint {names.SPARE_TAINT} nor label {names.SPARE_LABEL}=true is set{role}"


class Dangling(SparesMessage, frozen=True):
    reason = Reason.DANGLING

    def text(self) -> str:
        return f"Label {names.TEMPLATE_LABEL} names {self.template}, which does not exist"


class WasMovedOut(SparesMessage, frozen=True):
    reason = Reason.WAS_MOVED_OUT

    def text(self) -> str:
        return f"Out of management since spec.selector of {self.template} stopped matching"


# remedies


class AddSpareTaint(PlainMessage, frozen=True):
    reason = Reason.ADD_SPARE_TAINT
    sentence = f"Add taint {names.SPARE_TAINT} to the node"


class AddSpares(PlainMessage, frozen=True):
    reason = Reason.ADD_SPARES
    sentence = "Add spare nodes that spec.selector matches"


class AddTemplate(PlainMessage, frozen=True):
    reason = Reason.ADD_TEMPLATE
    sentence = "Create a NodeTemplate that selects the node"


class SetRelease(PlainMessage, frozen=True):
    reason = Reason.SET_RELEASE
    sentence = "Set spec.releasePolicy to Release to release surplus nodes"


class RaiseNodes(SparesMessage, frozen=True):
    reason = Reason.RAISE_NODES
    templates: tuple[str, ...] = ()

    def text(self) -> str:
        return f"Raise spec.nodes of {listed(self.templates or (self.template,))}"


class LowerNodes(PlainMessage, frozen=True):
    reason = Reason.LOWER_NODES
    sentence = "Lower spec.nodes with spec.releasePolicy set to Release"


class ChangeSelector(PlainMessage, frozen=True):
    reason = Reason.CHANGE_SELECTOR
    sentence = "Change spec.selector or the node's labels"


class RaisePriority(PlainMessage, frozen=True):
    reason = Reason.RAISE_PRIORITY
    sentence = "Raise spec.priority"


class EndDryRun(PlainMessage, frozen=True):
    reason = Reason.END_DRY_RUN
    sentence = "Set spec.dryRun to false"


class EndPause(PlainMessage, frozen=True):
    reason = Reason.END_PAUSE
    sentence = f"Set spec.paused to false and remove annotation {PAUSED}"


class FixTemplate(PlainMessage, frozen=True):
    reason = Reason.FIX_TEMPLATE
    sentence = "Correct the field named in the error"


class MakeReady(PlainMessage, frozen=True):
    reason = Reason.MAKE_READY
    sentence = "Make the node Ready, or set spec.eligibility.requireReady to false"


class Uncordon(PlainMessage, frozen=True):
    reason = Reason.UNCORDON
    sentence = "Uncordon the node, or set spec.eligibility.requireReady to false"


class EmptyNode(PlainMessage, frozen=True):
    reason = Reason.EMPTY_NODE
    sentence = "Drain the node"


class LeaveElsewhere(PlainMessage, frozen=True):
    reason = Reason.LEAVE_ELSEWHERE
    sentence = "Restore the worker pool that is draining the node"


class CreateTemplate(PlainMessage, frozen=True):
    reason = Reason.CREATE_TEMPLATE
    sentence = "Create that NodeTemplate"


REFUSALS: Final[Mapping[str, type[NodesMessage]]] = {
    each.reason: each
    for each in (
        NotReady,
        Unschedulable,
        NotEmpty,
        PodsUnknown,
        OwnedElsewhere,
        NodeDeleting,
        Reserved,
        SelfDefeating,
        NotAdopted,
        Withheld,
    )
}
"""Why nodes are not claimed or not adopted; `status.refusals` counts them in this order."""


def template_named(action: Action) -> str:
    """Return the template that an action is for; empty for a spare that belongs to none."""
    return action.facts.template if isinstance(action.facts, SparesMessage) else ""
