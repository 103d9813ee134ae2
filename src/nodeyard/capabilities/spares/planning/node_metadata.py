"""Labels, annotations and taints that a template sets on a node, and the repair of their drift.

`settle` sets what the template wants and records it; `undo` removes what is recorded and restores what it displaced.
Neither touches settings outside the record, nor values that somebody changed since.

Nodes of a template keep its settings, and spares keep the spare label. Settings that were removed or changed by hand
are restored; settings that others added stay. Adding a NoExecute taint to a node in use is disruptive and counts for
the brake. On a claim it does not count: the template asked for the node with that taint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import (
    Adopted,
    NodesMessage,
    ReleaseCancelled,
    SpareLabelled,
    SpareUnlabelled,
    Updated,
    Withheld,
)
from nodeyard.capabilities.spares.planning.builder import HARMLESS, Impact, PlanBuilder
from nodeyard.capabilities.spares.planning.node_patch import (
    NOTHING_DISPLACED,
    Displaced,
    Edit,
    NodePatch,
    PatchCache,
    Record,
    TaintId,
    Taints,
    find_taint,
    format_taint,
    is_recorded,
    parse_taint,
    put_taint,
    record_of,
    release_of,
    remove_taint,
    taint_id,
)
from nodeyard.capabilities.spares.planning.partition import Partition
from nodeyard.capabilities.spares.planning.templates import Resolved, Wanted
from nodeyard.capabilities.spares.snapshot import has_spare_taint
from nodeyard.kube.names import is_restricted
from nodeyard.kube.objects import Node, Taint
from nodeyard.plan.model import Disruption


class _SettledMap(NamedTuple):
    """Changes to one map (labels or annotations), and its part of the record afterwards."""

    changes: dict[str, str | None]
    ours: dict[str, str]
    displaced: dict[str, str]


def is_settled(node: Node, wanted: Wanted) -> bool:
    """Tell whether the node already has what the template wants. Fast path for converged nodes."""
    labels, annotations = node.metadata.labels, node.metadata.annotations
    if names.SPARE_LABEL in labels:
        return False
    for key, value in wanted.labels.items():
        if labels.get(key) != value:
            return False
    for key, value in wanted.annotations.items():
        if annotations.get(key) != value:
            return False
    present = node.spec.taints
    if any(taint.key == names.SPARE_TAINT for taint in present):
        return False
    return all(_has_taint(present, taint) for taint in wanted.taints)


def _has_taint(present: Taints, wanted: Taint) -> bool:
    found = find_taint(present, taint_id(wanted))
    return found is not None and found.value == wanted.value


def settle(edit: Edit, wanted: Wanted, record: Record, *, prune: bool) -> None:
    """Set what is wanted, remove the spare label and taint, and update the record."""
    metadata = edit.node.metadata
    past = record.displaced
    labels = _settle_map(metadata.labels, wanted.labels, record.labels, past.labels, prune=prune)
    annotations = _settle_map(
        metadata.annotations, wanted.annotations, record.annotations, past.annotations, prune=prune
    )
    edit.labels.update(labels.changes)
    edit.annotations.update(annotations.changes)
    edit.drop_label(names.SPARE_LABEL)
    edit.drop_annotation(names.LABELLED)
    ours, displaced = _settle_taints(edit, wanted.taints, record, prune=prune)
    after = msgspec.structs.replace(
        record,
        labels=labels.ours,
        annotations=annotations.ours,
        taints=ours,
        displaced=_displaced(labels.displaced, annotations.displaced, displaced),
    )
    # An empty record is written only to replace an existing one.
    is_empty = not (after.labels or after.annotations or after.taints or after.spare_taints or after.adopted)
    if names.RECORD in metadata.annotations or not is_empty:
        edit.put_record(after)


def _displaced(labels: dict[str, str], annotations: dict[str, str], taints: tuple[str, ...]) -> Displaced:
    if not (labels or annotations or taints):
        return NOTHING_DISPLACED
    return Displaced(labels=labels, annotations=annotations, taints=taints)


def _settle_map(
    current: Mapping[str, str],
    wanted: Mapping[str, str],
    ours: Mapping[str, str],
    displaced: Mapping[str, str],
    *,
    prune: bool,
) -> _SettledMap:
    settled = _SettledMap({}, dict(ours), dict(displaced))
    for key, value in wanted.items():
        present = current.get(key)
        if present == value:
            continue
        settled.changes[key] = value
        if key not in ours and present is not None:
            settled.displaced[key] = present
        settled.ours[key] = value
    if prune:
        for key, value in ours.items():
            if key not in wanted:
                del settled.ours[key]
                before = settled.displaced.pop(key, None)
                if current.get(key) == value:
                    settled.changes[key] = before
    return settled


def _settle_taints(
    edit: Edit, wanted: Taints, record: Record, *, prune: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Edit the taints; return the recorded and the displaced taints afterwards."""
    ours, displaced = _by_id(record.taints), _by_id(record.displaced.taints)
    recorded = dict(ours)
    taints = edit.taints
    if any(taint.key == names.SPARE_TAINT for taint in taints):
        taints = tuple(taint for taint in taints if taint.key != names.SPARE_TAINT)
    for taint in wanted:
        same = taint_id(taint)
        present = find_taint(taints, same)
        if present is not None and present.value == taint.value:
            continue
        if same not in ours and present is not None:
            displaced[same] = present
        recorded[same] = taint
        taints = put_taint(taints, taint)
    if prune:
        kept = {taint_id(taint) for taint in wanted}
        for same, taint in ours.items():
            if same not in kept:
                del recorded[same]
                taints = _restore_taint(taints, taint, displaced.pop(same, None))
    edit.taints = taints
    return tuple(map(format_taint, recorded.values())), tuple(map(format_taint, displaced.values()))


def _restore_taint(taints: Taints, ours: Taint, before: Taint | None) -> Taints:
    """Replace our taint by the one that it displaced. A taint whose value somebody changed stays."""
    present = find_taint(taints, taint_id(ours))
    if present is None or present.value != ours.value:
        return taints
    return remove_taint(taints, taint_id(ours)) if before is None else put_taint(taints, before)


def undo(edit: Edit, record: Record) -> None:
    """Remove the recorded settings and restore what they displaced."""
    metadata, past = edit.node.metadata, record.displaced
    for key, value in record.labels.items():
        if metadata.labels.get(key) == value:
            edit.labels[key] = past.labels.get(key)
    for key, value in record.annotations.items():
        if metadata.annotations.get(key) == value:
            edit.annotations[key] = past.annotations.get(key)
    displaced = _by_id(past.taints)
    for same, taint in _by_id(record.taints).items():
        edit.taints = _restore_taint(edit.taints, taint, displaced.get(same))


def _by_id(texts: tuple[str, ...]) -> dict[TaintId, Taint]:
    return {taint_id(taint): taint for taint in map(parse_taint, texts)}


# nodes of a template


def repair(builder: PlanBuilder, template: Resolved, kept: Iterable[Node]) -> None:
    """Restore drifted nodes, adopt nodes without a record, and cancel releases of nodes that are needed again."""
    prune = template.template.spec.prune
    patches = PatchCache(template.wanted, partial(restore, template=template))
    withheld: list[str] = []
    for node in kept:
        wanted = _wanted_for(template, node)
        if wanted is not template.wanted and not _has_restricted_labels(node, template):
            withheld.append(node.metadata.name)
        if names.RELEASE in node.metadata.annotations:
            edit = Edit(node)
            cancel_release(edit)
            restore(edit, template)
            _patch(builder, template, node, edit.to_patch(), ReleaseCancelled)
        elif not is_recorded(node, template.name):
            _patch(builder, template, node, patches.patch_for(node), Adopted)
        elif prune:
            edit = Edit(node)
            restore(edit, template)
            if not edit.is_empty:
                _patch(builder, template, node, edit.to_patch(), Updated)
        elif not is_settled(node, wanted):
            _patch(builder, template, node, patches.patch_for(node), Updated)
    builder.block_nodes(template.ref, Withheld(template=template.name), withheld)


def _wanted_for(template: Resolved, node: Node) -> Wanted:
    """Return the settings for this node; adopted nodes get no restricted labels."""
    record = record_of(node)
    is_claimed = record is not None and record.template == template.name and not record.adopted
    return template.wanted if is_claimed else template.wanted_if_adopted


def _has_restricted_labels(node: Node, template: Resolved) -> bool:
    labels = node.metadata.labels
    return all(labels.get(key) == value for key, value in template.wanted.labels.items() if is_restricted(key))


def _patch(builder: PlanBuilder, template: Resolved, node: Node, patch: NodePatch, kind: type[NodesMessage]) -> None:
    impact = Impact(Disruption.EVICTS, template.approval_group("update")) if patch.evicts else HARMLESS
    builder.patch(node, patch, template.message(kind, node), impact)


def restore(edit: Edit, template: Resolved) -> None:
    """Set what the template wants. A node without the template's record is recorded as adopted."""
    record = msgspec.structs.replace(record_of(edit.node) or Record(template=template.name), disowned_by="")
    prune = template.template.spec.prune
    if not is_recorded(edit.node, template.name):
        record, prune = msgspec.structs.replace(record, template=template.name, adopted=True), False
    settle(edit, _wanted_for(template, edit.node), record, prune=prune)


def cancel_release(edit: Edit) -> None:
    """Remove the release note, and the cordon if Nodeyard set it."""
    note = release_of(edit.node)
    if note is not None and note.cordoned:
        edit.unschedulable = False
    edit.drop_annotation(names.RELEASE)


# spares


def label_spares(builder: PlanBuilder, partition: Partition) -> None:
    """Label nodes with the spare taint for `kubectl get nodes`, and remove Nodeyard's label with the taint.

    A spare label that others set stays. A spare that this plan claims is not labelled first. Spares are labelled even
    without any template; if all templates are dry runs, nothing is written.
    """
    templates = partition.templates
    if templates and all(template.template.is_dry_run for template in templates):
        return
    for spare in partition.spares.spares:
        if not spare.claimed_by and spare.refusal is None and _lacks_label(spare.node):
            edit = Edit(spare.node)
            set_spare_label(edit)
            builder.edit(edit, SpareLabelled())
    for node in partition.untainted:
        edit = Edit(node)
        edit.drop_label(names.SPARE_LABEL)
        edit.drop_annotation(names.LABELLED)
        builder.edit(edit, SpareUnlabelled())
    for node in partition.orphans:
        _repair_orphan(builder, node)


def _repair_orphan(builder: PlanBuilder, node: Node) -> None:
    """Cancel the release of a node whose template is gone: no template would finish it."""
    edit = Edit(node)
    cancel_release(edit)
    if _lacks_label(node):
        set_spare_label(edit)
    if edit.is_empty:
        return
    is_releasing = names.RELEASE in edit.annotations
    cancelled = ReleaseCancelled(template=node.metadata.labels[names.TEMPLATE_LABEL])
    builder.edit(edit, cancelled if is_releasing else SpareLabelled())


def _lacks_label(node: Node) -> bool:
    return node.metadata.labels.get(names.SPARE_LABEL) != names.TRUE and has_spare_taint(node)


def set_spare_label(edit: Edit) -> None:
    """Set the spare label and note in an annotation that it is Nodeyard's."""
    edit.labels[names.SPARE_LABEL] = names.TRUE
    edit.annotations[names.LABELLED] = names.TRUE
