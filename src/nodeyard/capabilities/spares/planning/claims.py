"""Claims: missing nodes are claimed from the spares, each with one patch; unclaimed spares get a reason.

The patch removes the spare taint and label, sets the owner's label and the template's settings, and writes the record.
A node is therefore never claimed without being configured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import REFUSALS, Claimed, NodesMessage, Reserved
from nodeyard.capabilities.spares.planning.builder import PlanBuilder
from nodeyard.capabilities.spares.planning.node_metadata import settle
from nodeyard.capabilities.spares.planning.node_patch import Edit, PatchCache, format_taint, spare_taints
from nodeyard.capabilities.spares.planning.record import FOREIGN, OURS, Record
from nodeyard.capabilities.spares.planning.spare_index import Eligibility, Picker, Spare, SpareIndex, count_zones
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.kube.objects import Node
from nodeyard.kube.selectors import LabelSelector

Refused = Sequence[NodesMessage]
"""The refused nodes of each reason."""


def claim(
    builder: PlanBuilder, spares: SpareIndex, template: Resolved, kept: Iterable[Node], after: Sequence[tuple[str, ...]]
) -> int:
    """Claim up to `len(after)` spares and return how many. Each claim waits for the actions in its entry of `after`."""
    missing = len(after)
    if not missing:
        return 0
    queue = spares.queue(template)
    picker = Picker(queue, count_zones(kept, template))
    if not template.template.is_dry_run:
        picked = list(picker.take(missing))
        for spare in picked:
            spares.claim(spare, template.name)
    else:
        with spares.dry_run(queue) as picked:
            picked.extend(picker.take(missing))
    patches = PatchCache(template.wanted, partial(_configure, template=template))
    for spare, first in zip(picked, after, strict=False):
        builder.patch(spare.node, patches.patch_for(spare.node), template.message(Claimed, spare.node), after=first)
    return len(picked)


def reserve(spares: SpareIndex, template: Resolved, kept: Iterable[Node], missing: int) -> None:
    """Keep `missing` spares that are not eligible yet from templates of lower priority."""
    picker = Picker(spares.queue(template, is_reservation=True), count_zones(kept, template))
    for spare in picker.take(missing):
        spares.reserve(spare, template.name)


def _configure(edit: Edit, template: Resolved) -> None:
    """Configure a spare as a node of the template and remove out-of-management labels of an earlier owner."""
    node = edit.node
    record = Record(
        template=template.name,
        spare_taints=tuple(map(format_taint, spare_taints(node))),
        spare_label=_label_owner(node),
    )
    settle(edit, template.wanted, record, prune=False)
    for key in (names.OUT_LABEL, names.OUT_ROLE_LABEL):
        if key not in template.wanted.labels:
            edit.drop_label(key)


def _label_owner(node: Node) -> str:
    if names.SPARE_LABEL not in node.metadata.labels:
        return ""
    return OURS if names.LABELLED in node.metadata.annotations else FOREIGN


# refusals


class Refusals:
    """Counts the matching spares that a short template could not claim.

    Many templates share few selectors, so results are cached until a spare is claimed or reserved.
    """

    def __init__(self, spares: SpareIndex) -> None:
        self._spares = spares
        self._cache: dict[tuple[LabelSelector, Eligibility, int, int], Refused] = {}

    def of(self, template: Resolved) -> Refused:
        spares = self._spares
        if spares.has_self_defeating(template):
            return self._count(template)
        if not (spares.has_refused or spares.reservations or any(template.eligibility)):
            return ()
        key = (template.selector, template.eligibility, len(spares.claimed), spares.reservations)
        refused = self._cache.get(key)
        if refused is None:
            refused = self._cache[key] = self._count(template)
        return refused

    def _count(self, template: Resolved) -> Refused:
        found: dict[Reason, list[str]] = {}
        higher: set[str] = set()
        for spare in self._spares.matching(template.selector):
            reason = refusal(spare, template)
            if reason is not None:
                found.setdefault(reason, []).append(spare.name)
            if reason is Reason.RESERVED:
                higher.add(spare.reserved_for)
        return [
            (Reserved(higher=tuple(sorted(higher))) if reason is Reason.RESERVED else REFUSALS[reason]()).with_nodes(
                nodes
            )
            for reason, nodes in found.items()
        ]


def refusal(spare: Spare, template: Resolved) -> Reason | None:
    """Return the reason why a template cannot claim a spare that its selector matches; None if it is claimed."""
    if spare.claimed_by:
        return None
    if spare.reserved_for and spare.reserved_for != template.name:
        return Reason.RESERVED
    if template.touches_selector and not template.keeps(spare.node.metadata.labels):
        return Reason.SELF_DEFEATING
    return spare.refusal_for(template.eligibility)
