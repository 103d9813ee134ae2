"""A node with the spare taint carries the spare label, so that `kubectl get nodes` shows it; ours goes with the taint.

A label that others set stays and counts. A node that is being claimed gets no label first: it would be taken off again.
"""

from __future__ import annotations

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.draft import Draft
from nodeyard.capabilities.spares.planning.drift import stay
from nodeyard.capabilities.spares.planning.edits import Edit
from nodeyard.capabilities.spares.planning.fleet import Fleet
from nodeyard.capabilities.spares.snapshot import has_spare_taint
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.objects import Node


def label_spares(draft: Draft, fleet: Fleet) -> None:
    if _is_rehearsal(fleet):
        return
    for spare in fleet.stock.spares:
        if not spare.taker and spare.refusal is None and _lacks_label(spare.node):
            edit = Edit(spare.node)
            mark(edit)
            draft.edit(edit, Reason.SPARE_LABELLED, {})
    for node in fleet.unmarked:
        edit = Edit(node)
        edit.drop_label(names.SPARE_LABEL)
        edit.drop_annotation(names.LABELLED)
        draft.edit(edit, Reason.SPARE_UNLABELLED, {})
    for node in fleet.strays:
        _tend_stray(draft, node)


def _is_rehearsal(fleet: Fleet) -> bool:
    """The rule is about nodes and holds without any template. But who has only dry runs has asked for no change."""
    return bool(fleet.templates) and all(template.template.is_dry_run for template in fleet.templates)


def _tend_stray(draft: Draft, node: Node) -> None:
    """A node whose template vanished unseen: nobody would finish its release, or label it, but we."""
    edit = Edit(node)
    stay(edit)
    if _lacks_label(node):
        mark(edit)
    if edit.is_empty:
        return
    is_leaving = names.RELEASE in edit.annotations
    reason = Reason.RELEASE_CANCELLED if is_leaving else Reason.SPARE_LABELLED
    draft.edit(edit, reason, {"template": node.metadata.labels[names.TEMPLATE_LABEL]} if is_leaving else {})


def _lacks_label(node: Node) -> bool:
    return node.metadata.labels.get(names.SPARE_LABEL) != names.TRUE and has_spare_taint(node)


def mark(edit: Edit) -> None:
    """Set the label, and note that it is ours."""
    edit.labels[names.SPARE_LABEL] = names.TRUE
    edit.annotations[names.LABELLED] = names.TRUE
