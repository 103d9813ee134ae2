"""Allocation of one template: move out mismatched nodes, release surplus, repair drift, claim missing nodes.

The finalizer of a template is added before its first node is patched and removed after its last node is done. A
template that cannot be decoded is reported and left alone. It is unknown whether it would release its nodes, so they
keep their settings and the owner's label: a new template of that name finds them again.

Missing nodes are claimed from the spares, each with one patch; unclaimed spares get a reason. The patch removes the
spare taint and label, sets the owner's label and the template's settings, and writes the record. A node is therefore
never claimed without being configured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import (
    REFUSALS,
    Abandoned,
    Claimed,
    DryRun,
    FinalizerAdded,
    FinalizerRemoved,
    Invalid,
    NodesMessage,
    NotAdopted,
    OwnedElsewhere,
    Paused,
    Reserved,
)
from nodeyard.capabilities.spares.planning.builder import PlanBuilder, template_ref
from nodeyard.capabilities.spares.planning.node_metadata import repair, settle
from nodeyard.capabilities.spares.planning.node_patch import (
    FOREIGN,
    OURS,
    Edit,
    PatchCache,
    Record,
    format_taint,
    is_recorded,
    spare_taints,
)
from nodeyard.capabilities.spares.planning.partition import (
    Eligibility,
    Partition,
    Picker,
    Spare,
    SpareIndex,
    count_zones,
    members_of,
)
from nodeyard.capabilities.spares.planning.releases import choose_surplus, detach, move_out, release, take_back
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.snapshot import owner_elsewhere
from nodeyard.client.decoder import Malformed
from nodeyard.kube.objects import Node
from nodeyard.kube.selectors import LabelSelector
from nodeyard.plan.model import FieldChange

LISTED = 50
"""Maximum number of nodes listed in status."""


@dataclass
class Allocation:
    """Result of planning one template."""

    template: Resolved
    short: int = 0
    """Number of nodes that are still missing."""
    claims: int = 0
    """Number of spares that the plan claims."""
    competitor: str = ""
    """The short template of higher priority that must be served first."""
    kept: list[Node] = field(default_factory=list)
    refused: list[Node] = field(default_factory=list)
    """Nodes with the template's label that are not adopted."""


def allocate(builder: PlanBuilder, partition: Partition, template: Resolved) -> Allocation:
    """Plan one template with the spares that earlier templates left."""
    allocation = Allocation(template)
    if template.idle is Reason.INVALID:
        builder.block(template.ref, Invalid(template=template.name, error=template.error))
        if template.template.is_deleting and not (template.template.is_paused or template.template.is_dry_run):
            # Nobody can fix the template any more, and its finalizer would block the deletion forever.
            _delete(builder, partition, template, _manageable_nodes(builder, partition, template))
    elif template.idle is Reason.PAUSED:
        builder.block(template.ref, Paused(template=template.name))
    elif template.idle is Reason.DRY_RUN:
        dry_run = PlanBuilder(builder.now)
        _allocate(dry_run, partition, allocation)
        _summarize_dry_run(builder, template, dry_run)
    else:
        _allocate(builder, partition, allocation)
    return allocation


def _allocate(builder: PlanBuilder, partition: Partition, allocation: Allocation) -> None:
    template = allocation.template
    nodes = _manageable_nodes(builder, partition, template)
    if template.template.is_deleting:
        _delete(builder, partition, template, nodes)
        return
    builder.after = add_finalizer(builder, template)
    allocation.kept, allocation.refused = members_of(template, partition.nodes_of(template))
    refused = {node.metadata.name for node in allocation.refused}
    builder.block_nodes(template.ref, NotAdopted(template=template.name), refused)
    moved = move_out(builder, template, (node for node in nodes if not template.matches(node)))
    ours = [node for node in nodes if template.matches(node) and node.metadata.name not in refused]
    surplus: list[Node] = []
    if template.template.releases:
        staying = sum(not (_is_deleting(node) or owner_elsewhere(node)) for node in allocation.kept)
        surplus = choose_surplus(ours, template, partition.snapshot, staying - template.desired)
        release(builder, partition.snapshot, template, surplus)
    leaving = {node.metadata.name for node in surplus}
    repair(builder, template, (node for node in ours if node.metadata.name not in leaving) if leaving else ours)
    dependencies = _claim_dependencies(template.desired - len(allocation.kept), moved)
    returned = take_back(builder, template, partition.disowned.get(template.name, ()), dependencies)
    allocation.claims = claim(builder, partition.spares, template, allocation.kept, dependencies[returned:])
    allocation.short = len(dependencies) - returned - allocation.claims
    builder.after = ()


def _claim_dependencies(missing: int, moved: list[str]) -> list[tuple[str, ...]]:
    """Return one entry per missing node: the actions that its claim waits for.

    A claim that replaces a node moved out of management waits until that node is moved out.
    """
    vacant = max(0, missing - len(moved))
    return [()] * vacant + [(id,) for id in moved[: max(0, missing - vacant)]]


def _manageable_nodes(builder: PlanBuilder, partition: Partition, template: Resolved) -> list[Node]:
    """Return the template's nodes except those being deleted or managed by another capability."""
    manageable: list[Node] = []
    refused: list[str] = []
    for node in partition.nodes_of(template):
        if owner_elsewhere(node):
            refused.append(node.metadata.name)
        elif not _is_deleting(node):
            manageable.append(node)
    builder.block_nodes(template.ref, OwnedElsewhere(template=template.name), refused)
    return manageable


def _is_deleting(node: Node) -> bool:
    return node.metadata.deletion_timestamp is not None


def _delete(builder: PlanBuilder, partition: Partition, template: Resolved, nodes: list[Node]) -> None:
    """Detach or release the nodes of a deleted template; remove its finalizer after the last one.

    Nodes managed by another capability, and nodes without the template's record, are always detached: only this
    capability removes the owner's label.
    """
    elsewhere = [node for node in partition.nodes_of(template) if owner_elsewhere(node) and not _is_deleting(node)]
    if not template.template.releases:
        remove_finalizer(builder, template, after=detach(builder, template, [*nodes, *elsewhere]))
        return
    ours = [node for node in nodes if is_recorded(node, template.name)]
    unrecorded = [node for node in nodes if not is_recorded(node, template.name)]
    release(builder, partition.snapshot, template, ours)
    detached = detach(builder, template, [*unrecorded, *elsewhere])
    if not ours:
        remove_finalizer(builder, template, after=detached)


def _summarize_dry_run(builder: PlanBuilder, template: Resolved, dry_run: PlanBuilder) -> None:
    """Report what a dry run would do. A deleted template without nodes loses its finalizer: nothing else changes."""
    counts = dry_run.counts()
    touched = [action.object.name for action in dry_run.actions if action.object.kind == "Node"]
    if template.template.is_deleting and not touched:
        remove_finalizer(builder, template)
        return
    builder.blocked += dry_run.blocked
    builder.waits |= dry_run.waits
    builder.block(
        template.ref,
        DryRun(
            template=template.name,
            claims=counts[Reason.CLAIMED] + counts[Reason.TAKEN_BACK],
            updates=counts[Reason.ADOPTED] + counts[Reason.UPDATED] + counts[Reason.RELEASE_CANCELLED],
            moves=counts[Reason.MOVED_OUT] + counts[Reason.DETACHED],
            releases=counts[Reason.RELEASING] + counts[Reason.RELEASED],
            nodes=tuple(sorted(touched)[:LISTED]),
        ),
    )


_FIELD = "metadata.finalizers"


def add_finalizer(builder: PlanBuilder, template: Resolved) -> tuple[str, ...]:
    """Add the finalizer if it is missing; return the action that the template's node patches must wait for."""
    if template.template.has_finalizer:
        return ()
    metadata = template.template.metadata
    change = FieldChange(
        path=_FIELD, from_=list(metadata.finalizers) or None, to=[*metadata.finalizers, names.FINALIZER]
    )
    return (
        builder.set_finalizers(template.ref, change, metadata.resource_version, FinalizerAdded(template=template.name)),
    )


def remove_finalizer(builder: PlanBuilder, template: Resolved, after: Iterable[str] = ()) -> None:
    if template.template.has_finalizer:
        metadata = template.template.metadata
        change = _removal(metadata.finalizers)
        message = FinalizerRemoved(template=template.name)
        builder.set_finalizers(template.ref, change, metadata.resource_version, message, tuple(after))


def block_malformed(builder: PlanBuilder, malformed: Malformed) -> None:
    """Report a template that cannot be decoded.

    If it is being deleted, remove the finalizer: nobody can fix it any more, and it would never go.
    """
    ref = template_ref(malformed.name, malformed.uid)
    builder.block(ref, Invalid(template=malformed.name, error=malformed.error))
    if malformed.is_deleting and names.FINALIZER in malformed.finalizers:
        change = _removal(malformed.finalizers)
        builder.set_finalizers(ref, change, malformed.resource_version, Abandoned(template=malformed.name))


def _removal(finalizers: Iterable[str]) -> FieldChange:
    before = list(finalizers)
    return FieldChange(path=_FIELD, from_=before, to=[each for each in before if each != names.FINALIZER] or None)


# claims


Refused = Sequence[NodesMessage]
"""The refused nodes of each reason."""


def claim(
    builder: PlanBuilder, spares: SpareIndex, template: Resolved, kept: Iterable[Node], after: Sequence[tuple[str, ...]]
) -> int:
    """Claim up to `len(after)` spares and return how many. Each claim waits for the actions in its entry of `after`."""
    missing = len(after)
    if not missing:
        return 0
    queue = spares.queue(template)
    picker = Picker(queue, count_zones(kept, template))
    if not template.template.is_dry_run:
        picked = list(picker.take(missing))
        for spare in picked:
            spares.claim(spare, template.name)
    else:
        with spares.dry_run(queue) as picked:
            picked.extend(picker.take(missing))
    patches = PatchCache(template.wanted, partial(_configure, template=template))
    for spare, first in zip(picked, after, strict=False):
        builder.patch(spare.node, patches.patch_for(spare.node), template.message(Claimed, spare.node), after=first)
    return len(picked)


def reserve(spares: SpareIndex, template: Resolved, kept: Iterable[Node], missing: int) -> None:
    """Keep `missing` spares that are not eligible yet from templates of lower priority."""
    picker = Picker(spares.queue(template, is_reservation=True), count_zones(kept, template))
    for spare in picker.take(missing):
        spares.reserve(spare, template.name)


def _configure(edit: Edit, template: Resolved) -> None:
    """Configure a spare as a node of the template and remove out-of-management labels of an earlier owner."""
    node = edit.node
    record = Record(
        template=template.name,
        spare_taints=tuple(map(format_taint, spare_taints(node))),
        spare_label=_label_owner(node),
    )
    settle(edit, template.wanted, record, prune=False)
    for key in (names.OUT_LABEL, names.OUT_ROLE_LABEL):
        if key not in template.wanted.labels:
            edit.drop_label(key)


def _label_owner(node: Node) -> str:
    if names.SPARE_LABEL not in node.metadata.labels:
        return ""
    return OURS if names.LABELLED in node.metadata.annotations else FOREIGN


# refusals


class Refusals:
    """Counts the matching spares that a short template could not claim.

    Many templates share few selectors, so results are cached until a spare is claimed or reserved.
    """

    def __init__(self, spares: SpareIndex) -> None:
        self._spares = spares
        self._cache: dict[tuple[LabelSelector, Eligibility, int, int], Refused] = {}

    def of(self, template: Resolved) -> Refused:
        spares = self._spares
        if spares.has_self_defeating(template):
            return self._count(template)
        if not (spares.has_refused or spares.reservations or any(template.eligibility)):
            return ()
        key = (template.selector, template.eligibility, len(spares.claimed), spares.reservations)
        refused = self._cache.get(key)
        if refused is None:
            refused = self._cache[key] = self._count(template)
        return refused

    def _count(self, template: Resolved) -> Refused:
        found: dict[Reason, list[str]] = {}
        higher: set[str] = set()
        for spare in self._spares.matching(template.selector):
            reason = refusal(spare, template)
            if reason is not None:
                found.setdefault(reason, []).append(spare.name)
            if reason is Reason.RESERVED:
                higher.add(spare.reserved_for)
        return [
            (Reserved(higher=tuple(sorted(higher))) if reason is Reason.RESERVED else REFUSALS[reason]()).with_nodes(
                nodes
            )
            for reason, nodes in found.items()
        ]


def refusal(spare: Spare, template: Resolved) -> Reason | None:
    """Return the reason why a template cannot claim a spare that its selector matches; None if it is claimed."""
    if spare.claimed_by:
        return None
    if spare.reserved_for and spare.reserved_for != template.name:
        return Reason.RESERVED
    if template.touches_selector and not template.keeps(spare.node.metadata.labels):
        return Reason.SELF_DEFEATING
    return spare.refusal_for(template.eligibility)
