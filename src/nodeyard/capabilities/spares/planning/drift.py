"""Drift repair: nodes of a template keep its settings, and spares keep the spare label.

Settings that were removed or changed by hand are restored; settings that others added stay. Adding a NoExecute taint to
a node in use is disruptive and counts for the brake. On a claim it does not count: the template asked for the node with
that taint.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

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
from nodeyard.capabilities.spares.planning.node_metadata import is_settled, settle
from nodeyard.capabilities.spares.planning.node_patch import Edit, NodePatch, PatchCache
from nodeyard.capabilities.spares.planning.partition import Partition
from nodeyard.capabilities.spares.planning.record import Record, is_recorded, record_of, release_of
from nodeyard.capabilities.spares.planning.templates import Resolved, Wanted
from nodeyard.capabilities.spares.snapshot import has_spare_taint
from nodeyard.kube.names import is_restricted
from nodeyard.kube.objects import Node
from nodeyard.plan.model import Disruption

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
