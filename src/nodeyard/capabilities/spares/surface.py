"""What the dashboard shows of spares: the template and state of a node, and templates that lack nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.node_patch import release_of
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.report.status import SUFFICIENT
from nodeyard.capabilities.spares.snapshot import is_spare, template_of
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.kube.objects import Node
from nodeyard.runtime.capability import View
from nodeyard.runtime.surface import Attention, Severity, Surface, Tile, TileState

_CHOSEN: Final = frozenset({Reason.PAUSED.value, Reason.DRY_RUN.value})
"""Why a template lacks nodes because its user wants it so."""


def tile(view: View, name: str) -> Tile | None:
    node: Node | None = view.get("Node", name)
    if node is None:
        return None
    if (template := template_of(node)) is not None:
        note = release_of(node)
        if note is not None:
            return Tile(state=TileState.RELEASING, since=note.since, template=template, hue=template)
        return Tile(state=TileState.CLAIMED, template=template, hue=template)
    return Tile(state=TileState.SPARE) if is_spare(node) else None


def attention(view: View, _now: datetime) -> Iterator[Attention]:
    """Yield the templates that lack nodes, as their condition Sufficient says."""
    templates: Sequence[NodeTemplate] = view.all(names.KIND)
    for template in templates:
        for condition in template.status.conditions:
            if condition.type == SUFFICIENT and condition.status == "False" and condition.reason not in _CHOSEN:
                has_none = template.status.current_nodes == 0
                yield Attention(
                    kind="Shortage",
                    severity=Severity.CRITICAL if has_none else Severity.WARNING,
                    object=Resolved(template).ref,
                    reason=condition.reason,
                    message=condition.message,
                    since=condition.last_transition_time,
                    link={"view": "yard", "group": "template", "template": template.name},
                )


SURFACE: Final = Surface(tile=tile, attention=attention)
