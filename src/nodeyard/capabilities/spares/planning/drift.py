"""A template's nodes are kept as described: what was lost or changed by hand is put right, what others added stays.

A taint that evicts is disruptive where the node has been in use without it. (Where a node is claimed it is not: who
asks for the node asks for it as described.)
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.draft import HARMLESS, Disturbance, Draft
from nodeyard.capabilities.spares.planning.edits import Change, Edit
from nodeyard.capabilities.spares.planning.moulds import Moulds
from nodeyard.capabilities.spares.planning.record import Record, record_of, release_of
from nodeyard.capabilities.spares.planning.settings import is_settled, settle
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.objects import Node
from nodeyard.plan.model import Disruption


def repair(draft: Draft, template: Resolved, kept: Iterable[Node]) -> None:
    """Also calls off a release of a node that is wanted after all."""
    prune = template.template.spec.prune
    moulds = Moulds(template.wanted, partial(_restore, template=template))
    for node in kept:
        annotations = node.metadata.annotations
        if names.RELEASE in annotations:
            edit = Edit(node)
            stay(edit)
            _restore(edit, template)
            _draft(draft, template, node, edit.change(), Reason.RELEASE_CANCELLED)
        elif prune and names.RECORD in annotations:
            edit = Edit(node)
            _restore(edit, template)
            if not edit.is_empty:
                _draft(draft, template, node, edit.change(), Reason.UPDATED)
        elif not is_settled(node, template.wanted):
            _draft(draft, template, node, moulds.cast(node), Reason.UPDATED)


def _draft(draft: Draft, template: Resolved, node: Node, change: Change, reason: Reason) -> None:
    disturbance = Disturbance(Disruption.EVICTS, _undertaking(template)) if change.evicts else HARMLESS
    draft.change(node, change, reason, template.facts(node), disturbance)


def _undertaking(template: Resolved) -> str:
    """All that one version of a template puts right; another version has to be approved anew."""
    metadata = template.template.metadata
    return f"update {template.name} {metadata.uid} {metadata.generation}"


def _restore(edit: Edit, template: Resolved) -> None:
    record = record_of(edit.node) or Record(template=template.name)
    settle(edit, template.wanted, record, prune=template.template.spec.prune)


def stay(edit: Edit) -> None:
    """Call a release off: the note goes, and the cordon if it is ours."""
    note = release_of(edit.node)
    if note is not None and note.cordoned:
        edit.unschedulable = False
    edit.drop_annotation(names.RELEASE)
