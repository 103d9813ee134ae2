"""A template's nodes are kept as described: what was lost or changed by hand is put right, what others added stays."""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.draft import Draft
from nodeyard.capabilities.spares.planning.edits import Edit
from nodeyard.capabilities.spares.planning.record import Record, record_of, release_of
from nodeyard.capabilities.spares.planning.settings import is_settled, settle
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.objects import Node


def repair(draft: Draft, template: Resolved, kept: Iterable[Node]) -> None:
    """Also calls off a release of a node that is wanted after all."""
    prune = template.template.spec.prune
    for node in kept:
        annotations = node.metadata.annotations
        is_leaving = names.RELEASE in annotations
        may_prune = prune and names.RECORD in annotations
        if not is_leaving and not may_prune and is_settled(node, template.wanted):
            continue
        edit = Edit(node)
        if is_leaving:
            stay(edit)
        settle(edit, template.wanted, record_of(node) or Record(template=template.name), prune=prune)
        if not edit.is_empty:
            reason = Reason.RELEASE_CANCELLED if is_leaving else Reason.UPDATED
            draft.edit(edit, reason, {"template": template.name, "zone": template.zone_of(node)})


def stay(edit: Edit) -> None:
    """Call a release off: the note goes, and the cordon if it is ours."""
    note = release_of(edit.node)
    if note is not None and note.cordoned:
        edit.unschedulable = False
    edit.drop_annotation(names.RELEASE)
