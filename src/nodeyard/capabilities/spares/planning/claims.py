"""Missing nodes are claimed from the stock: taken and configured in one patch.

The spare taint and label go, the owner's label and the template's settings come, and what the node was like before is
recorded, all in one write: there is no moment at which a node is claimed and not yet configured.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.planning.draft import Draft
from nodeyard.capabilities.spares.planning.edits import Edit
from nodeyard.capabilities.spares.planning.moulds import Moulds
from nodeyard.capabilities.spares.planning.record import FOREIGN, OURS, Record
from nodeyard.capabilities.spares.planning.settings import settle
from nodeyard.capabilities.spares.planning.spread import Picker, usage
from nodeyard.capabilities.spares.planning.stock import Spare, Stock
from nodeyard.capabilities.spares.planning.taints import render, spare_taints
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.objects import Node


def claim(draft: Draft, stock: Stock, template: Resolved, kept: Iterable[Node], missing: int) -> int:
    """Claim as many as are missing and can be had; how many that were."""
    if missing <= 0:
        return 0
    aisles = stock.aisles(template)
    picker = Picker(aisles, usage(map(template.zone_of, kept)))
    if not template.template.is_dry_run:
        picked = list(_pick(picker, missing))
        for spare in picked:
            stock.claim(spare, template.name)
    else:
        with stock.rehearsal(aisles) as picked:
            picked.extend(_pick(picker, missing))
    moulds = Moulds(template.wanted, partial(configure, template=template))
    for spare in picked:
        draft.change(spare.node, moulds.cast(spare.node), Reason.CLAIMED, template.facts(spare.node))
    return len(picked)


def _pick(picker: Picker, missing: int) -> Iterable[Spare]:
    for _ in range(missing):
        spare = picker.next()
        if spare is None:
            return
        yield spare


def configure(edit: Edit, template: Resolved) -> None:
    """Make a spare a node of the template. An old note that it fell out of another's management is then history."""
    node = edit.node
    record = Record(
        template=template.name,
        spare_taints=tuple(map(render, spare_taints(node))),
        spare_label=_label_origin(node),
    )
    settle(edit, template.wanted, record, prune=False)
    for key in (names.OUT_LABEL, names.OUT_ROLE_LABEL):
        if key not in template.wanted.labels:
            edit.drop_label(key)


def _label_origin(node: Node) -> str:
    if names.SPARE_LABEL not in node.metadata.labels:
        return ""
    return OURS if names.LABELLED in node.metadata.annotations else FOREIGN
