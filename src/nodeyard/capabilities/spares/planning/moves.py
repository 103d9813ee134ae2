"""Nodes that a template loses without giving them back: they stay as they are and only stop being its nodes."""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.draft import Draft
from nodeyard.capabilities.spares.planning.drift import stay
from nodeyard.capabilities.spares.planning.edits import Edit
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.objects import Node


def move_out(draft: Draft, template: Resolved, strangers: Iterable[Node]) -> None:
    """Nodes that the selector does not match any more are marked as out of management."""
    for node in strangers:
        edit = _disowned(node)
        if node.metadata.labels.get(names.OUT_LABEL) != template.name:
            edit.labels[names.OUT_LABEL] = template.name
        if node.metadata.labels.get(names.OUT_ROLE_LABEL) != names.TRUE:
            edit.labels[names.OUT_ROLE_LABEL] = names.TRUE
        draft.edit(edit, Reason.MOVED_OUT, {"template": template.name})


def let_go(draft: Draft, template: Resolved, nodes: Iterable[Node]) -> list[str]:
    """The nodes of a deleted template that retains them; the ids of the actions."""
    return [draft.edit(_disowned(node), Reason.LET_GO, {"template": template.name}) for node in nodes]


def _disowned(node: Node) -> Edit:
    edit = Edit(node)
    stay(edit)
    edit.drop_label(names.TEMPLATE_LABEL)
    edit.drop_annotation(names.RECORD)
    return edit
