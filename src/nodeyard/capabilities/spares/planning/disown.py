"""Nodes that leave a template without a release: only the owner's label and the record's ownership change.

A node that the selector no longer matches moves out of management and keeps its record. If the selector matches again,
the template takes the node back unchanged. Moving many nodes out at once counts for the brake, and the claims that
would replace them wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import Detached, MovedOut, TakenBack
from nodeyard.capabilities.spares.planning.builder import Impact, PlanBuilder
from nodeyard.capabilities.spares.planning.drift import cancel_release, restore
from nodeyard.capabilities.spares.planning.node_patch import Edit
from nodeyard.capabilities.spares.planning.record import is_recorded, record_of
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.kube.objects import Node
from nodeyard.plan.model import Disruption


def move_out(builder: PlanBuilder, template: Resolved, nodes: Iterable[Node]) -> list[str]:
    """Move nodes that the selector no longer matches out of management; return the action ids."""
    impact = Impact(Disruption.RELEASES, template.approval_group("disown"))
    message = MovedOut(template=template.name)
    return [builder.edit(_edit_moved_out(template, node), message, impact) for node in nodes]


def _edit_moved_out(template: Resolved, node: Node) -> Edit:
    edit = _edit_detached(node)
    record = record_of(node)
    if record is not None and is_recorded(node, template.name):
        edit.put_record(msgspec.structs.replace(record, disowned_by=template.template.metadata.uid))
    if node.metadata.labels.get(names.OUT_LABEL) != template.name:
        edit.labels[names.OUT_LABEL] = template.name
    if node.metadata.labels.get(names.OUT_ROLE_LABEL) != names.TRUE:
        edit.labels[names.OUT_ROLE_LABEL] = names.TRUE
    return edit


def take_back(
    builder: PlanBuilder, template: Resolved, disowned: Iterable[Node], after: Sequence[tuple[str, ...]]
) -> int:
    """Take back up to `len(after)` nodes that match again, by name, and return how many.

    Each waits for the actions in its entry of `after`.
    """
    uid = template.template.metadata.uid
    matching = [node for node in disowned if _is_disowned_by(node, uid) and template.can_keep(node)]
    returning = sorted(matching, key=lambda node: node.metadata.name)[: len(after)]
    for node, first in zip(returning, after, strict=False):
        edit = Edit(node)
        restore(edit, template)
        edit.drop_label(names.OUT_LABEL)
        edit.drop_label(names.OUT_ROLE_LABEL)
        builder.edit(edit, template.message(TakenBack, node), after=first)
    return len(returning)


def _is_disowned_by(node: Node, uid: str) -> bool:
    record = record_of(node)
    return record is not None and bool(uid) and record.disowned_by == uid


def detach(builder: PlanBuilder, template: Resolved, nodes: Iterable[Node]) -> list[str]:
    """Remove a deleted template's label and record from its nodes; return the action ids. Other settings stay."""
    return [builder.edit(_edit_detached(node), Detached(template=template.name)) for node in nodes]


def _edit_detached(node: Node) -> Edit:
    edit = Edit(node)
    cancel_release(edit)
    edit.drop_label(names.TEMPLATE_LABEL)
    edit.drop_record()
    return edit
