"""A template's nodes are kept as described: what was lost or changed by hand is put right, what others added stays."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.draft import Draft
from nodeyard.capabilities.spares.planning.edits import Edit
from nodeyard.capabilities.spares.planning.moulds import Moulds
from nodeyard.capabilities.spares.planning.record import Record, record_of, release_of
from nodeyard.capabilities.spares.planning.settings import is_settled, settle
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.objects import Node


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
            draft.edit(edit, Reason.RELEASE_CANCELLED, template.facts(node))
        elif prune and names.RECORD in annotations:
            edit = Edit(node)
            _restore(edit, template)
            if not edit.is_empty:
                draft.edit(edit, Reason.UPDATED, template.facts(node))
        elif not is_settled(node, template.wanted):
            draft.change(node, moulds.cast(node), Reason.UPDATED, template.facts(node))


def _restore(edit: Edit, template: Resolved) -> None:
    record = record_of(edit.node) or Record(template=template.name)
    settle(edit, template.wanted, record, prune=template.template.spec.prune)


def stay(edit: Edit) -> None:
    """Call a release off: the note goes, and the cordon if it is ours."""
    note = release_of(edit.node)
    if note is not None and note.cordoned:
        edit.unschedulable = False
    edit.drop_annotation(names.RELEASE)
